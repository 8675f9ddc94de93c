"""The bench: toggles for every stage, one question under several settings side by side, and a quick comparison of them.

Imports `experiment`, `report` and what stands above them. `bench.py` needs no browser; `widget.py` shows it in one.
"""
