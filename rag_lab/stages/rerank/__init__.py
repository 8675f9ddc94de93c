"""What orders the merged candidates: a cross-encoder, a query likelihood, a module of one's own, or nothing.

Imports the ground of `stages`, `stages/retrieval` for the names of searches, and what stands above them.
"""
