"""The comparison report."""
