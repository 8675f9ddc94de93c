"""What a process reads of its surroundings when it begins, and what it tells of its work: .env, logs, spans.

Imports `errors`, `redaction`, `visible` and `machine/own_file`; nothing here knows what retrieval is.
"""
