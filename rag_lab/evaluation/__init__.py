"""Metrics on traces."""
