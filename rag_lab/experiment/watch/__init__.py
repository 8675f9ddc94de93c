"""How a run stands, read from its folder by another process: what is done, what it took, what is left.

Imports `runs`, `memory` and `experiment/forecast`; writes nothing.
"""
