"""Models behind a server: Gemini, OpenAI-compatible ones, any LangChain chat model; retries, bounds, failures.

Imports the rest of `models` and what stands above it. A file is imported only when its provider is asked for.
"""
