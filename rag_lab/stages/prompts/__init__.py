"""Custom prompts: files that say what a model is asked, and the places where they stand.

Imports the ground of `stages` and what stands above it; no other room of `stages`.
"""
