"""The way to a judge: its queue, its remembered replies, and how a reply is read.

Imports `models` and what stands above it; knows no metric, so that every judged metric can use it.
"""
