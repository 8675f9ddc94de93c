"""Runs a plan: papermill kernels side by side, limits on money and time, what an earlier start has finished.

Imports `experiment`, `experiment/forecast`, `report` for the page at the end, and what stands above them.
"""
