"""Metrics that need no model: retrieval, citations, answers against references, costs.

Imports the ground of `evaluation`, and `records`.
"""
