"""What a variant changes against the baseline, which needs no label: rankings, answers, citations, cost.

Imports `comparison`'s tables, `evaluation` and what stands above them.
"""
