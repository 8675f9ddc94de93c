"""A plan of a race on the small dataset with many questions, and models that are doubles."""

from whole_plan import write_plan

QUOTES = {
    "press.md": ["The relief valve of press P-1 opens at 290 bar", "The oil is changed every 2,000 hours"],
    "oven.txt": ["The curing oven runs at 180 degrees Celsius", "Alarm A7 means that the burner is locked out"],
    "canteen.txt": ["The canteen opens at 11:30 and closes at 14:00", "On Fridays there is fish"],
    "notes/shift.txt": ["the oven tripped twice", "The press ran without a stop"],
}


def many_questions(n, answers=True):
    """Return `n` questions on the four documents, two in the same words standing in different documents."""
    places = [(source, quote) for source, quotes in QUOTES.items() for quote in quotes]
    return [
        {
            "id": f"r{number:03}",
            "question": f"{places[number % 8][1]}, case {number}?",
            "answers": ["yes"],
            "class": "specific" if number % 2 else "fuzzy",
            "tags": [f"item-{number // 4}"],
            "evidence": [{"source": places[number % 8][0], "quote": places[number % 8][1]}],
        }
        for number in range(n)
    ]


def race_plan(folder, n_asked=57, **changes):
    """Write a race of four variants in rounds of 12 and 20 questions; 60 questions can be measured."""
    return write_plan(
        folder,
        many_questions(n_asked),
        **{
            "design": "racing",
            "factors": {"retrieval.mode": ["dense", "bm25", "tfidf", "rrf"]},
            "race": {"rounds": [12, 20]},
            "metrics": ["retrieval.mrr@1", "retrieval.ndcg@5"],
        }
        | changes,
    )
