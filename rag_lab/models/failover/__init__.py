"""Several models for one role, in order: the first that answers plays it.

Imports what a model needs before it can be asked, and what stands above it; `shared` asks here which one that is.
"""
