"""Search by words: sparse indexes behind one protocol, and the analyzers that cut texts into terms."""
