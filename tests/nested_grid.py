"""A grid of three factors in which a rule means nothing without HyDE: what is run, and what is the same pipeline."""

from itertools import product

HYDE, RULE, RERANK = "hyde", "rule", "rerank"
LEVELS = {HYDE: ["none", "classified"], RULE: ["a", "b"], RERANK: ["off", "on"]}
CELLS = [dict(zip(LEVELS, cell, strict=True)) for cell in product(*LEVELS.values())]
RUN = {"-".join(cell.values()): cell for cell in CELLS if (cell[HYDE], cell[RULE]) != ("none", "b")}
SAME = [({HYDE: "none", RULE: "b", RERANK: rerank}, f"none-a-{rerank}") for rerank in LEVELS[RERANK]]
BASE = "none-a-off"
