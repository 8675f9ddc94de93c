"""A model's card: what it is, what it can do, and what it will need of this machine; nothing is loaded to write it.

Imports the rest of `models` and what stands above it.
"""
