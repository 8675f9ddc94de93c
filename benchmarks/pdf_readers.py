"""Compare the readers of PDF files, page by page: how much of the text is the same, and seconds a page.

Usage: python benchmarks/pdf_readers.py [FOLDER]. Takes the PDFs below the folder (the demo set's by default) and prints
one JSON object. `words` is the share of all words that both readers found, each as often as it comes; `pages` the share
of pages with the same words in the same order; `paragraphs` the share of PyMuPDF's that PDFium has, line ends aside.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path

from rag_lab.corpus.load.loader import Loader
from rag_lab.corpus.load.pdf import load_pdf, load_pdf_tables
from rag_lab.corpus.load.pdf_pdfium import load_pdfium

READERS: dict[str, Loader] = {"text": load_pdf, "tables": load_pdf_tables, "pdfium": load_pdfium}


def read(loader: Loader, paths: list[Path]) -> tuple[list[str], float]:
    """Return the text of all pages with text, and seconds a page, after one file that loads the library."""
    loader(paths[0], "first")
    start = time.perf_counter()
    pages = [page.text for path in paths for page in loader(path, path.name).documents]
    return pages, (time.perf_counter() - start) / len(pages)


def agreement(one: list[str], other: list[str]) -> dict[str, float]:
    words, others = (Counter(word for page in pages for word in page.split()) for pages in (one, other))
    paragraphs, others_paragraphs = (
        Counter(" ".join(part.split()) for page in pages for part in page.split("\n\n")) for pages in (one, other)
    )
    same = [a.split() == b.split() for a, b in zip(one, other, strict=True)]
    return {
        "words": 2 * (words & others).total() / (words.total() + others.total()),
        "pages": sum(same) / len(same),
        "paragraphs": (paragraphs & others_paragraphs).total() / paragraphs.total(),
    }


def main(folder: Path) -> None:
    paths = sorted(folder.rglob("*.pdf"))
    found = {name: read(loader, paths) for name, loader in READERS.items()}
    report = {
        "pages": len(found["text"][0]),
        "agreement": agreement(found["text"][0], found["pdfium"][0]),
        "seconds_a_page": {name: seconds for name, (_, seconds) in found.items()},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "datasets/plant_docs/corpus"))
