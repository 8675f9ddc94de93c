"""One kind of method a file: intervals, tests in families, margins, noise, and what a comparison allows one to say.

Numbers in, numbers and sentences out. Imports `errors` and `_kit`; `routing` `records` and `config`, too.
"""
