import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pymupdf
import pytest
from hostile_files import HOSTILE

from rag_lab.corpus import reading
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.load.pdfium import load_pdfium
from rag_lab.corpus.reading import Reading, load
from rag_lab.errors import ConfigError

WITHOUT_PYMUPDF = """
import sys
sys.modules["pymupdf"] = None
from pathlib import Path
from rag_lab.config import CorpusConfig
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.reading import load
from rag_lab.corpus.reading import Reading
folder = Path(sys.argv[1])
loaders = Reading(CorpusConfig(pdf="pdfium"), None, folder).loaders
print(load(folder / "a.pdf", "a.pdf", loaders).documents[0].text, load_folder(folder).documents[0].text, sep="|")
"""


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.endswith(".pdf")])
def test_hostile_files_are_met_as_by_the_other_readers(tmp_path: Path, name: str) -> None:
    make, words = HOSTILE[name]
    make(tmp_path / name)
    try:
        reasons = load_pdfium(tmp_path / name, name).warnings
    except Exception as error:
        reasons = (str(error),)
    assert any(words in reason for reason in reasons), reasons


def test_a_page_that_unpacks_to_too_much_is_found_in_an_enciphered_file(tmp_path: Path) -> None:
    HOSTILE["bomb.pdf"][0](tmp_path / "a.pdf")
    with pymupdf.open(tmp_path / "a.pdf") as pdf:
        pdf.save(tmp_path / "b.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="", owner_pw="b")
    loaded = load_pdfium(tmp_path / "b.pdf", "b.pdf")
    assert [document.page for document in loaded.documents] == [1]
    assert loaded.warnings == ("page 2 holds content that cannot be read: left out; replace the file.",)


def test_a_word_broken_at_a_lines_end_is_one_word(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "The hydrau-\nlic oil")
    pdf.save(tmp_path / "a.pdf")
    loaders = Reading(CorpusConfig(pdf="pdfium"), None, tmp_path).loaders
    assert load(tmp_path / "a.pdf", "a.pdf", loaders).documents[0].text == "The hydraulic oil"


def test_pymupdf_may_be_left_out(tmp_path: Path) -> None:
    pdf = pymupdf.open()
    pdf.new_page().insert_text((72, 72), "58 bar")
    pdf.save(tmp_path / "a.pdf")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYMUPDF, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout == "58 bar|58 bar\n", done.stderr


@pytest.mark.parametrize(
    ("pdf", "package", "other"), [("tables", "pymupdf", "pdfium"), ("pdfium", "pypdfium2", "text")]
)
def test_a_reader_that_is_not_installed_is_named_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pdf: str, package: str, other: str
) -> None:
    def installed(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(reading, "version", installed)
    with pytest.raises(ConfigError, match=f"corpus.pdf: {pdf} needs {package}.* set corpus.pdf to {other} or install"):
        Reading(CorpusConfig.model_validate({"pdf": pdf}), None, tmp_path)
    config = CorpusConfig.model_validate({"pdf": other})
    assert package not in str(Reading(config, None, tmp_path).identity())
