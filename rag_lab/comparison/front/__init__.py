"""What quality costs: which variants no other beats in both, against seconds, tokens and dollars.

Imports the tables of a run, `advice/price` and what stands above `comparison`; it knows no HTML.
"""
