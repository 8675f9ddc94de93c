"""What a plan will cost, found out without doing it, and what a run has spent beside that.

Imports the ground of `experiment` and what stands above it.
"""
