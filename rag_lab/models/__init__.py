"""Models by `provider:name`: their contracts, providers, prices, and what is remembered of embeddings and pair scores.

What cannot be used (a name, a package, a key, weights, a server) raises a `ModelError` in words for its user. Imports
`memory` and what stands above it. Libraries of models are imported when a model is loaded, never before.
"""

import os

# llama.cpp's threads wait for each other by spinning, and a second process on the same cores then slows both to a
# crawl (3.1 to 5.6 tokens/s written under load, 20 to 26 with this). libgomp reads it once, when torch or llama.cpp
# first loads it, so it stands here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
