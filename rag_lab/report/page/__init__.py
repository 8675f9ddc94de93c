"""The report as one page that needs no network, and the page of a dataset, from templates that always escape.

Imports the rest of `report`, `comparison`, and what stands above it.
"""
