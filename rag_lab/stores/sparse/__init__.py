"""Sparse indexes behind one contract: BM25 and TF-IDF, and how a text becomes terms.

Imports `stores/vector` for what a search returns, and what stands above `stores`.
"""
