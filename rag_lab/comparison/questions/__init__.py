"""Question by question: what every variant did with it, its passages, its scores, and what a person preferred.

Imports `tables`; knows no HTML.
"""
