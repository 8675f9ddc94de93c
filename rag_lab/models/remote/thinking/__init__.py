"""How remote models are asked to think, and stopped: Gemini's budgets and levels, efforts, steps for others.

Imports `models.protocols` alone.
"""
