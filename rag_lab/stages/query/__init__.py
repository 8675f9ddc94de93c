"""From the question to what is searched: understanding, rewriting, other phrasings, hypothetical documents.

Imports the ground of `stages` and what stands above it; no other room of `stages`.
"""
