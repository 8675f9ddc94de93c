"""Processes that hold local models for all kernels of a sweep on one machine, started when a model is first asked.

Imports the rest of `models` and what stands above it; what kernels need of it imports no library of models.
"""
