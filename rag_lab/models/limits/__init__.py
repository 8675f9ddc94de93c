"""How much models read: the limit that each knows of itself, and the tokens beyond it, which have no effect.

Imports the contracts of models and what any program needs; providers say here what they know, and pipelines ask.
"""
