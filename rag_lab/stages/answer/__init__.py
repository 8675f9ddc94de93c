"""From ranked passages to an answer: the context, the prompt, the reply, and what is read in it.

Imports the ground of `stages` and what stands above it; no other room of `stages`.
"""
