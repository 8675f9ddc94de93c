"""What the notebooks show."""
