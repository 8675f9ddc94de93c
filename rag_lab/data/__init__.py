"""Dataset formats and importers."""
