"""Cross-encoders behind a server: TEI, vLLM, Cohere, Jina, and whatever speaks like one of them.

Imports the rest of `models.remote` and what stands above it; the library `httpx` is imported with the first call.
"""
