"""Models of an Ollama server by its own interface: chat with thinking and windows, embeddings, what it has, downloads.

Imports the rest of `models.remote` and what stands above it; the library `ollama` is imported with the first call.
"""
