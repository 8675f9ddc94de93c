"""One notebook executed by papermill: the process and the kernel it runs in, and what of it is kept.

Imports what any program needs and `redaction`; knows no plan and no run folder.
"""
