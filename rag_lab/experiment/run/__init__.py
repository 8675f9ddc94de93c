"""Runs a plan: papermill kernels side by side, limits on money and time, what an earlier start has finished.

Imports `experiment`, `experiment/forecast`, `report` for the page at the end, and what stands above them.
"""

# In the run folder: what the outputs of a finished sweep were made of. It stands here for those who are in a hurry.
MADE_FILE = "made_of.json"
