"""The designs that make variants of factors, the rules between factors, and the table of their names.

Imports the ground of `experiment` that stands above it (its errors and names), and rooms above that.
"""
