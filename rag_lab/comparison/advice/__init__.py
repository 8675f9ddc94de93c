"""What to do after a run: a row a module with effect, verdict and price, and which variant to use.

Imports the tables of `comparison` and what stands above them.
"""
