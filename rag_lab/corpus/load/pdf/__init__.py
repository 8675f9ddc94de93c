"""PDF files to documents: by PyMuPDF as text or with tables, by PDFium, or as pictures that a chat model reads.

Imports `corpus/load`, the ground of `corpus`, and what stands above it.
"""
