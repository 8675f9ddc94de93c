"""What notebooks call and show: the variant that a sweep runs, the bench, views of what is worked with.

Imports `experiment`, `report` and what stands above them.
"""
