"""What work takes of the machine that it runs on: memory, disk and energy, where they can be read.

Imports `process` and `errors`, and nothing else of the workbench.
"""
