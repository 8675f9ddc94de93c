"""From what is searched to candidates and back to few: searches, fusion, merge, selection.

Imports the ground of `stages` and what stands above it; no other room of `stages`.
"""
