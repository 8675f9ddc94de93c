"""One method a file: intervals, tests, corrections, power, noise, and what a comparison allows one to say.

Numbers in, numbers and sentences out. Imports `errors` and `_kit`, and `records` where questions have classes.
"""
