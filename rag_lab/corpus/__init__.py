"""Files to documents, parents and children, and the index they are searched in.

Imports `stores` and what stands above it. `load`, one file to documents, knows no other module but `spans`.
"""
