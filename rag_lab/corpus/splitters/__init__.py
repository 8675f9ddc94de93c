"""Where a text is cut into the pieces that are embedded: one splitter a file."""
