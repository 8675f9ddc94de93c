"""Where the jobs of a sweep run: each executor takes jobs and yields each as it ends, here or on other machines.

Imports `experiment/kernels`, data, memory and `runs`; knows no plan and no run folder. A new one is a launcher of
workers in `launchers.py` and a line in its table.
"""
