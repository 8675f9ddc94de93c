"""From an experiment file to a plan: factors, designs, checks before anything runs, and the manifest.

Imports `comparison`, `report` and what stands above them. Of its folders, `forecast` says what a plan will cost and
could show, and `run` runs it by `executors`, whose `kernels` execute notebooks.
"""
