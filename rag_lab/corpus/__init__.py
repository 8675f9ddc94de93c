"""Files to documents, parents and children; the index they are searched in."""
