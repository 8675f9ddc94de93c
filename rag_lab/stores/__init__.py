"""Vector stores behind one protocol."""
