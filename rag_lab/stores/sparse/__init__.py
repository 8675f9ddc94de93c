"""Sparse indexes behind one contract: BM25 and TF-IDF, and how a text becomes terms.

Imports `stores/vector` for labels and ties, and what stands above `stores`.
"""
