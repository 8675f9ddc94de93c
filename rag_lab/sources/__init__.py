"""Sources whose data change (folders, SQL, streams, HTTP), and the engine that keeps a corpus equal to them.

Imports `stages` and what stands above it; the engine knows no source, and no source knows the corpus.
"""
