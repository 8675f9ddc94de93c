"""What a run leaves on disk, and reading it: plan, traces, scores, manifest, and what two runs differ in.

Imports `data`, `config` and what stands above them; the rooms that compute and show read runs through here.
"""
