"""Where children are searched: `vector` and `sparse`, and the part of a configuration that names the store.

Imports `models` and what stands above it; no store knows what a file, a stage or a pipeline is.
"""
