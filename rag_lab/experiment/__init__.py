"""From an experiment file to a plan: factors, designs, checks before anything runs, and the manifest.

Imports `runs`, `evaluation` and what stands above them. Of its rooms, `forecast` says what a plan will cost and `run`
runs it; neither is imported from here.
"""
