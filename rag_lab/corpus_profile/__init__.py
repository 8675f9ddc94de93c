"""What a corpus is like, and what follows for the settings of a pipeline.

Reads an index that a pipeline has opened; imports `pipeline` and what stands above it, and knows no HTML.
"""
