"""Where children are searched: vector stores, a file each, and sparse indexes.

Imports `models` and what stands above it; no store knows what a file, a stage or a pipeline is.
"""
