from compared_runs import build, comparison, grid, promising, routed, run, synthetic, wide

__all__ = ["build", "comparison", "grid", "promising", "routed", "run", "synthetic", "wide"]
