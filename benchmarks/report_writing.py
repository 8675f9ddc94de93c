"""Does the review of a report pay? Ten topics of `plant_docs` with required facts, before and after the review.

`python benchmarks/report_writing.py [--model scripted|llamacpp:smollm2] [--parts 5] [--topics 10]` prints a table: of
the drafts and of what stands after the review the share of the required facts that are covered, of the cited
sentences whose source supports them, and of all sentences that the passages of their section support, with the
difference of the two and its 95% interval over topics. A sentence is supported where all its numbers and codes and
three in five of its words stand in the text; this is a rule and no judge, so it misses what is said in other words. The
scripted model writes by rules: sections on five aspects of a machine, sentences of the passages as they stand, those
with numbers first, and a review that drops what was said before and what has no number. So it says what the writer
makes of a model that invents nothing.
"""

import argparse
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import yaml

import rag_lab as rl
from rag_lab._kit.wording import with_interval
from rag_lab.models.protocols import ChatReply
from rag_lab.records import Question
from rag_lab.statistics.intervals import paired_differences

TOPICS = yaml.safe_load(Path(__file__).with_name("report_topics.yaml").read_text(encoding="utf-8"))
ASPECTS = ("Limits and set values", "Tightening torques", "Times and intervals", "Spare parts", "Faults and alarms")
_PASSAGE = re.compile(r"^\[(\d+)\] \([^\n]*\)\n(.*?)(?=^\[\d+\] \(|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CITED = re.compile(r"\[(\d+)\]")
_CODE = re.compile(r"[\w./-]*\d[\w./-]*")
_WORD = re.compile(r"[^\W\d_]{4,}")
_VALUE = re.compile(r"\d [a-zA-Z°]+|[A-Z]{2,}-\d{3,}")  # a number with a unit, an order number
_SHARE = 0.6


def plain(text):
    """Return a text as it is compared: small letters, one space, no comma within a number."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower().replace("%", " percent").replace("°c", " °c"))
    return " ".join(text.split())


def covers(text, fact):
    """Tell whether a text has one of the wordings of a fact, as words of their own."""
    return any(re.search(rf"(?<![\w.]){re.escape(plain(one))}(?!\w)", plain(text)) for one in str(fact).split(" | "))


def sentences(text):
    """Return the sentences of a section that say something."""
    return [one for one in _SENTENCE.split(text) if len(_WORD.findall(one)) >= 3]


def supported(sentence, text):
    """Tell whether a text has the numbers and codes of a sentence and most of its words."""
    sentence, text = plain(_CITED.sub("", sentence)), plain(text)
    there = {code.strip("./-") for code in _CODE.findall(text)}
    words = set(_WORD.findall(sentence))
    codes = {code.strip("./-") for code in _CODE.findall(sentence)}
    return codes <= there and len(words & set(_WORD.findall(text))) >= _SHARE * len(words)


class Writer:
    """A chat model that writes by rules and invents nothing."""

    constrains_json = True
    context_tokens = 8192

    def identity(self):
        """Return a name; raise the number with the rules."""
        return {"provider": "scripted", "name": "writer", "version": 3}

    def count_tokens(self, text):
        """Return about four characters a token."""
        return len(text) // 4

    def generate(self, requests):
        """Return a reply to each request."""
        texts = [self.reply(request.messages[-1].content, request.json_schema) for request in requests]
        return [ChatReply(text, tokens_in=1, tokens_out=len(text) // 4) for text in texts]

    def reply(self, asked, schema):
        """Return an outline, a draft of sentences as they stand, or of a draft those that are new and hold a number."""
        if schema:
            topic = asked.split("\n")[0].removeprefix("Topic: ")
            n = int(re.search(r"^Sections: (\d+)", asked, re.MULTILINE)[1])
            return json.dumps({"entries": [f"{aspect} of {topic}" for aspect in ASPECTS[:n]]})
        _, _, body = asked.partition("\n\nDraft:\n")
        if body:
            kept = [one for one in dict.fromkeys(_SENTENCE.split(body)) if re.search(r"\d", _CITED.sub("", one))]
            return " ".join(kept) or body
        wanted = set(_WORD.findall(plain(asked.partition("\n\nPassages:")[0])))
        found = [(n, one) for n, text in _PASSAGE.findall(asked) for one in sentences(text)]
        found.sort(key=lambda one: -len(wanted & set(_WORD.findall(plain(one[1])))) - 2 * len(_VALUE.findall(one[1])))
        return " ".join(f"{' '.join(one.split()).rstrip('.')} [{n}]." for n, one in found[:10])


def measured(report, facts, pipeline):
    """Return facts covered, citations that hold and faithful sentences, each of the drafts and of the reviewed text."""
    rows = []
    sources = {one.number: one.text for one in report.sources}
    readable = ""
    for kind in ("draft", "text"):
        texts = [getattr(one, kind) for one in report.sections]
        cited, faithful = [], []
        for section, text in zip(report.sections, texts, strict=True):
            asked = Question("report", section.title)
            (trace,) = pipeline.run([asked], answer=(), read=lambda _: {"passages"})
            read = " ".join(passage.text for passage in trace.passages)
            readable += f"{read}\n"
            for one in sentences(text):
                faithful.append(supported(one, read))
                if numbers := _CITED.findall(one):
                    cited.append(any(supported(one, sources[int(n)]) for n in numbers))
        every = " ".join(texts)
        rows.append(
            (
                np.mean([covers(every, fact) for fact in facts]),
                np.mean(cited) if cited else np.nan,
                np.mean(faithful) if faithful else np.nan,
                len(every.split()),
                np.mean([covers(readable, fact) for fact in facts]),
            )
        )
    return rows


def main():
    """Print the table of one model."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", default="scripted")
    arguments.add_argument("--parts", type=int, default=5)
    arguments.add_argument("--topics", type=int, default=10)
    given = arguments.parse_args()
    pipeline = rl.Pipeline("plant_docs").set({"query.rewrite": "none", "query.hyde": "none"})
    if given.model == "scripted":
        pipeline = pipeline.replace(report_model=Writer())
    else:
        pipeline = pipeline.set("models.report", given.model)
    found, calls = [], 0
    for topic, facts in list(TOPICS.items())[: given.topics]:
        with tempfile.TemporaryDirectory() as folder:
            report = rl.write(pipeline, topic, parts=given.parts, folder=folder)
        calls += report.n_calls
        found.append(measured(report, facts, pipeline))
        print(topic, *(tuple(round(float(n), 2) for n in row) for row in found[-1]), flush=True)
    rows = np.array(found)  # topics, draft and text, measures
    per_report = calls / len(found)
    print(f"\n{given.model}, {len(found)} topics, at most {given.parts} sections, {per_report:.1f} calls a report\n")
    print(f"Of the facts, {rows[:, 0, 4].mean():.3f} stand in the passages that were read.\n")
    print("| | draft | after the review | difference |\n|---|--:|--:|--:|")
    for n, name in enumerate(("facts covered", "cited sentences that hold", "sentences that are faithful", "words")):
        draft, text = rows[:, 0, n], rows[:, 1, n]
        both = ~np.isnan(draft) & ~np.isnan(text)
        cell = "–"
        if both.sum() > 1:
            (change,) = paired_differences([(text[both], draft[both])])
            cell = with_interval(change.mean, change.low, change.high)
        print(f"| {name} | {np.nanmean(draft):.3f} | {np.nanmean(text):.3f} | {cell} |")


if __name__ == "__main__":
    main()
