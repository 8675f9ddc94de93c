"""Designs, the runner and the run folder."""
