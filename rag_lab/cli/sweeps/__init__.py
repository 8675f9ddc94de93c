"""Commands that plan, run and watch sweeps.

Imports the rest of `cli` and, inside functions, the rooms that do the work.
"""
