"""Reordering candidates."""
