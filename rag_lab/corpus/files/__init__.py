"""Which files a corpus holds, whose they are, who may see them, and what changed since they were indexed.

Imports `corpus/load`, to which it hands each file, the ground of `corpus` and what stands above it.
"""
