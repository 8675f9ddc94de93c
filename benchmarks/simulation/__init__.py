"""Sweeps whose truth is known, and what a comparison makes of them; `benchmarks/calibration.py` runs the studies."""
