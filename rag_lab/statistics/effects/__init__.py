"""What each module adds: the factors of a design, their contrasts, main effects and interactions.

Imports the ground of `statistics` and what stands above it.
"""
