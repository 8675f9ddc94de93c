"""Designs that choose as they go, stage by stage or by trials: their variants, before and while they run.

Imports the ground of `experiment` and its rooms `designs` and `race`, and what stands above it.
"""
