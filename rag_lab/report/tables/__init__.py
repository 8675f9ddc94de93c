"""The tables of a report as texts in rows and columns, which pages, Markdown and terminals show alike.

Imports `comparison` and what stands above it; no other room of `report`.
"""
