"""What is remembered of the turns before a question: the last ones, or a summary of those before them.

Imports the ground of `stages`, its prompts, and what stands above them; no other room of `stages`.
"""
