"""What notebooks call and show: the variant that a sweep runs, a panel of switches, traces side by side.

Imports `experiment`, `report` and what stands above them.
"""
