"""The views of what is worked with, as `rag_lab.rich_display` names them: HTML for a notebook, text for a terminal.

Imports what stands above `notebook`. Nothing here reads a corpus, builds an index or loads a model.
"""
