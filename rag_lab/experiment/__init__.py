"""Designs, the stage store, the runner and the run folder."""
