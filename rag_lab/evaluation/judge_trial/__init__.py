"""A judge on trial before its scores are believed: right answers and spoilt ones, and what it says of them.

Imports the rest of `evaluation`, `data` for the questions, `statistics`, and what stands above them.
"""
