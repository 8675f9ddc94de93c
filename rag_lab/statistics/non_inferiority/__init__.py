"""Not worse by more than a margin: what may be left out, and how many questions would show it.

Imports the ground of `statistics`.
"""
