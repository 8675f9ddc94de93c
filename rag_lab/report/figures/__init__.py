"""The figures of a report by matplotlib; notebooks show the same ones.

Imports `comparison` and what stands above it; no other room of `report`.
"""
