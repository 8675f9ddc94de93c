"""Context, generation and parsing."""
