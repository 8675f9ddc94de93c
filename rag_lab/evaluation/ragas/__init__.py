"""RAGAs' own classes as metrics of ours, with failures as reasons in place of NaN.

Imports the ground of `evaluation` and what stands above it; RAGAs only when a metric is asked for.
"""
