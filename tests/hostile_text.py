"""Texts from outside that would steer a terminal or a page, and a run folder and a dataset that are full of them."""

import json

import pandas as pd
from small_dataset import write_dataset

# Writes the clipboard, names the window, colours, turns the reading direction, ends lines, deletes what was printed.
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b]0;evil\x1b\\\x1b[31m\x9b2J\u202e\u2066\u200f\u2028\u061c\x00\x08\x7f\x85\rEVIL"
CONTROLS = {chr(code) for code in [*range(32), 127, *range(0x80, 0xA0)]} - {"\n", "\t"}
CONTROLS |= set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NAME_EVIL = "\x1b]0;evil\x07\u202e"  # what a file may be called


def controls_in(text):
    return sorted({repr(character) for character in text if character in CONTROLS})


def poison_run(path):
    """Put EVIL into every kind of text of a run folder of `run_folder_fixture`: JSON keeps it escaped."""
    evil = json.dumps(EVIL)[1:-1]
    words = ("hydraulic", "the rewrite drifted", "Tighten", "press_p40", '"label": "', "OCR", "What is", "torque")
    for file in [path / "plan.json", path / "manifest.json", *path.glob("variants/*/traces.jsonl")]:
        text = file.read_text()
        for word in words:
            text = text.replace(word, word + evil)
        file.write_text(text)
    scores = pd.read_parquet(path / "scores.parquet")
    scores["reason"] = [reason + EVIL if reason else reason for reason in scores["reason"]]
    scores["judge"] = [judge + EVIL if judge else judge for judge in scores["judge"]]
    scores.to_parquet(path / "scores.parquet", index=False)
    return path


def write_evil_dataset(folder):
    """Write a dataset whose file names, documents, questions and lines that cannot be used hold EVIL."""
    question = {"id": f"e{EVIL}", "question": f"Where is {EVIL}?", "answers": [EVIL], "class": "fuzzy"}
    bad = {"id": "bad", "question": EVIL, "answers": [EVIL], "class": EVIL, "evidence": [{"source": EVIL}]}
    path = write_dataset(folder, "evil", [question, bad])
    (path / "corpus" / f"press{NAME_EVIL}.md").write_text(
        f"# Press {EVIL}\n\nThe valve of the evil press {EVIL} opens.\n"
    )
    (path / "corpus" / f"bad{NAME_EVIL}.pdf").write_bytes(b"no PDF")
    (path / "dataset.yaml").write_text(
        f"name: {json.dumps('evil ' + NAME_EVIL)}\ndescription: d\nlicence: CC0-1.0\nlanguage: en\npage_base: 1\n"
    )
    return path
