"""The bench: toggles for every stage, one question under several settings side by side, and a quick comparison of them.

Imports `experiment`, `report` and what stands above them. `bench_work.py` needs no browser; `bench.py` shows it in one.
"""
