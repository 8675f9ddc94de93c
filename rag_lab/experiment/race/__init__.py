"""The design `racing`: rounds of questions drop variants, and the winner is proven on questions that chose nothing.

Imports the ground of `experiment` and what stands above it.
"""
