"""What a report says of a run, or of two, in two floors: `tables` below, `findings` (sentences and advice) above.

`comparison` reads the tables of a run once. Imports `runs`, `evaluation`, `statistics` and what stands above them; it
knows no HTML, no page and no figure.
"""
