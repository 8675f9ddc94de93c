"""Vector stores behind one contract: engines find, the workbench scores, so that ties and filters are the same in all.

Imports `models` and what stands above it. An engine's library is imported when its store is opened.
"""
