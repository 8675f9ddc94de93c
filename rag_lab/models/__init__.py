"""Chat models, embeddings and pair scorers: one small file a provider, a lazy registry."""
