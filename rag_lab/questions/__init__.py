"""Questions drafted from documents by a chat model, none trusted until filters and a person have let it stand.

Imports the pipeline, and whatever stands above it.
"""
