"""Shows a comparison and computes nothing: as text, `page` and figures, and tables, of which the others are made.

Imports `comparison` and what stands above it; `page` imports the others.
"""
