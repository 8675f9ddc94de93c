"""Where evidence is lost: what became of each labelled piece under each variant, stage by stage. No model is asked.

Imports `comparison`'s tables, `evaluation` and what stands above them; it knows no HTML.
"""
