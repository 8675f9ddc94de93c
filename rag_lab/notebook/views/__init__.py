"""How each thing shows itself: `to_html` for a notebook, `to_text` for a terminal. `rag_lab.shows_itself` names them.

Imports what stands above `notebook`. Nothing here reads a corpus, builds an index or loads a model.
"""
