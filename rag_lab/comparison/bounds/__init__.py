"""What retrieval can bring a reader, between a closed book and the labelled evidence, and what variants reach of it.

Imports the tables of a run and what stands above `comparison`; it knows no HTML.
"""
