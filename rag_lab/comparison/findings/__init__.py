"""What follows from the tables, in sentences: the verdict, its caveats, conclusions, and which variant to use.

Imports `tables` and `comparison`.
"""
