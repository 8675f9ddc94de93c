"""Other people's formats: importers and exporters of BEIR, SQuAD and tables, and a run as TREC's files.

Imports the rest of `data` and what stands above it.
"""
