"""How many questions to ask, and what they can show: from the differences that an earlier run or a pilot saw.

Imports the ground of `statistics` and what stands above it.
"""
