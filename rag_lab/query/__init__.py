"""Query understanding and hypothetical documents."""
