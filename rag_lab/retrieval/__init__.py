"""Searching, and merging what was found."""
