"""Shows a comparison and computes nothing: `text`, `page`, `figures`, and `tables`, from which the others are made.

Imports `comparison` and what stands above it.
"""
