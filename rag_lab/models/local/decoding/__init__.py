"""What a causal model of transformers may write next: its thought up to a budget, then its reply, held to a schema.

Imports nothing of `local`. A file is imported only when a model of transformers or Unsloth answers.
"""
