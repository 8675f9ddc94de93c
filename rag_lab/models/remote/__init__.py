"""Models behind a server: Gemini, Ollama, OpenAI-compatible ones, any LangChain model; retries, bounds, failures.

Imports the rest of `models` and what stands above it. A file is imported only when its provider is asked for.
"""
