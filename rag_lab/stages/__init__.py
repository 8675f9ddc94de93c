"""The contract of a stage, and what runs one over many questions; the stages themselves are in the rooms below.

Imports `data` and what stands above it. Which stage follows which is written in `pipeline.py` alone.
"""
