"""A run as tables and what is computed from them: prices, effects, margins, bounds, fronts, evidence, changes.

Imports `runs`, `evaluation`, `statistics` and what stands above them; not `comparison`.
"""
