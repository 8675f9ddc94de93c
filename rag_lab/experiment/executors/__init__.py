"""Where the jobs of a sweep run: each executor takes jobs and yields each as it ends, here or on other machines.

Imports `experiment/kernels`, data, memory and `runs`; knows no plan and no run folder. A new one is a file here and a
line in `registry.py`.
"""
