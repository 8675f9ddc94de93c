"""Metrics on traces: their contract, their names, and `evaluate`, which turns traces into scores.

A metric reads traces and nothing else. Imports `judge`, `measures` and `ragas` by name, and what stands above them;
`judge_trial` stands below and imports this room.
"""
