"""The designs that make variants of factors, the rules between factors, and the names of variants.

Imports rooms above `experiment`.
"""
