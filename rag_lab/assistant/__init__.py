"""What people do with a pipeline beyond one question: conversations, and reports that are written from documents.

Imports the pipeline, and whatever stands above it.
"""
