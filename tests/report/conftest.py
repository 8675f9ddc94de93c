from compared_runs import build, comparison, grid, routed, run, synthetic, wide

__all__ = ["build", "comparison", "grid", "routed", "run", "synthetic", "wide"]
