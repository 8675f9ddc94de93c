"""Question by question: what every variant did with it, and its scores as plain lists.

Imports the comparison; knows no HTML.
"""
