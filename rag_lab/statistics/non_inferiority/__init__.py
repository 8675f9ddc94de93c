"""Not worse by more than a margin: what may be left out.

Imports the ground of `statistics` and `planning`.
"""
