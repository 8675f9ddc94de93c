"""GGUF files: their metadata and card, their tokenizer, the types that they store weights in, and changing these.

Imports what its neighbours in `local` may import, and none of them but `converted`.
"""
