"""Models that compute on this machine: llama.cpp, transformers, unsloth, sentence-transformers, and their weights.

Imports the rest of `models` and what stands above it. A file is imported only when its provider is asked for.
"""
