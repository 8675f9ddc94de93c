"""By how much two computations of one number in float32 may differ.

Processors, numbers of threads and what shares a batch change the order of its sums. Each step rounds by 6e-8 of the
number; a small network has some hundred steps.
"""

FLOAT32 = 1e-5
"""Of values about 1, and relative to larger ones."""
