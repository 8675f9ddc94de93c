"""A comparison in the terminal, in LaTeX, and as the `report.md` of a pull request.

Imports `report/tables`, `comparison` and what stands above it.
"""
