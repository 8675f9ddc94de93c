"""The index of a corpus: built once under its digest, opened whole, searched by what is built beside it.

Imports the other rooms of `corpus`, `stores`, and what stands above them.
"""
