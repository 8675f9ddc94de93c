"""Computes what a report says of a run, or of two: tables of scores, effects, studies, and the sentences on them.

Imports `runs`, `evaluation`, `statistics` and what stands above them. It knows no HTML, no page and no figure.
"""
