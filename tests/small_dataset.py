"""A dataset of four documents and four questions, small enough to run the real pipeline on."""

import json

DOCUMENTS = {
    "press.md": "# Press P-1\n\nThe relief valve of press P-1 opens at 290 bar. The oil is changed every 2,000 hours.",
    "oven.txt": "The curing oven runs at 180 degrees Celsius. Alarm A7 means that the burner is locked out.",
    "canteen.txt": "The canteen opens at 11:30 and closes at 14:00. On Fridays there is fish.",
    "notes/shift.txt": "Night shift: the oven tripped twice, the burner was reset. The press ran without a stop.",
}
QUESTIONS = [
    (
        "q1",
        "At what pressure does the relief valve of P-1 open?",
        "290 bar",
        "specific",
        "press.md",
        "opens at 290 bar",
    ),
    (
        "q2",
        "What does alarm A7 of the oven mean?",
        "The burner is locked out.",
        "specific",
        "oven.txt",
        "Alarm A7 means",
    ),
    ("q3", "Anything about food on Fridays?", "There is fish.", "fuzzy", "canteen.txt", "On Fridays there is fish"),
]


def write_dataset(folder, name="small", extra_questions=()):
    """Write the dataset to `folder / name` and return that path; q4 has no answer in the documents."""
    path = folder / name
    for source, text in DOCUMENTS.items():
        (path / "corpus" / source).parent.mkdir(parents=True, exist_ok=True)
        (path / "corpus" / source).write_text(text)
    (path / "dataset.yaml").write_text(f"name: {name}\ndescription: d\nlicence: CC0-1.0\nlanguage: en\npage_base: 1\n")
    lines = [
        {"id": i, "question": q, "answers": [a], "class": c, "evidence": [{"source": s, "quote": t}]}
        for i, q, a, c, s, t in QUESTIONS
    ]
    lines.append({"id": "q4", "question": "Who founded the plant?", "answers": [], "answerable": False})
    lines += extra_questions
    (path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
