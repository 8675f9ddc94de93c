"""One file to documents, a loader a kind of file: text, HTML, Word, spreadsheets, CSV, PDF.

Imports the ground of `corpus` and what stands above it. A loader knows no other file than the one it is given.
"""
