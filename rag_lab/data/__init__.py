"""Datasets: a folder of files with labelled questions, read, checked, sampled and perturbed.

Imports `corpus` and what stands above it.
"""
