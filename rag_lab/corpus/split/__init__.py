"""Documents to parents and children: one splitter a file, each giving spans of the text.

Imports the ground of `corpus`, and `models` for the splitter that compares embeddings.
"""
