"""The contract of a stage, and what runs one over many questions; then a file a stage. `steps.py` names all.

Imports `data` and what stands above it. Which stage follows which is written in `pipeline.py` alone.
"""
