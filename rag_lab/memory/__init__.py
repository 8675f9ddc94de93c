"""What is remembered: the store of results, work shared between processes, and the ledger of a run's calls.

Imports `_kit` and what stands above it, so that models and stages alike can remember.
"""
