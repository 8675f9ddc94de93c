"""What a design says of itself: what a fraction confounds, how a search chose and what it proves.

Imports the ground of `comparison` and what stands above it.
"""
