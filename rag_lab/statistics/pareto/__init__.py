"""Which of several variants, each with a quality and costs, no other beats, and how far that depends on the questions.

Imports numpy alone.
"""
