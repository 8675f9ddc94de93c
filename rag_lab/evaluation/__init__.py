"""Metrics on traces: their contract, their names, and `evaluate`, which turns traces into scores.

A metric reads traces and nothing else. Imports what stands above it; `registry` finds families of measures by name.
`judge_queue` knows no metric; `judge_trial` stands below all of them.
"""
