"""Designs at work that choose before they prove: races, searches stage by stage, trials; each round is a sweep.

Imports `experiment/run` and what stands above it.
"""
