"""Agents: graphs that decide by themselves when to search again, each node a stage call.

Imports the stages beside it, and whatever they may.
"""
