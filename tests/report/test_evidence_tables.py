"""Where evidence is lost, as tables and sentences."""

from dataclasses import replace

import pytest

from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.evidence_sentences import NOTHING, baseline_sentence, evidence_sentences
from rag_lab.report.compare_text import screen
from rag_lab.report.page.report_page import to_markdown
from rag_lab.report.sections import named_tables
from rag_lab.report.study_tables import evidence_tables
from rag_lab.runs.run_folder import write_json


@pytest.fixture
def fresh(build, tmp_path):
    return build.build_run(tmp_path / "run", 12, 3)


def test_each_row_adds_up_and_states_in_which_nothing_ended_have_no_column(wide):
    table = evidence_tables(wide)[0]
    assert table.header[:2] == ("variant", "pieces") and "lost in selection" not in table.header
    assert len(table.rows) == len(wide.variants) - 1  # one failed
    for _, pieces, *counts in table.rows:
        assert sum(map(int, counts)) == int(pieces) == 36  # of 40 questions four have no evidence
    of_classes = [row[2:] for row in evidence_tables(wide)[2].rows if row[1] == table.rows[0][0]]
    assert [sum(map(int, column)) for column in zip(*of_classes, strict=True)] == list(map(int, table.rows[0][1:]))


def test_what_moved_takes_one_count_to_the_other(wide):
    header, (base, *others) = evidence_tables(wide)[0].header[2:], list(evidence_tables(wide)[0].rows)
    for other in others:
        moves = [row for row in evidence_tables(wide)[1].rows if row[0] == other[0]]
        for name, before, after in zip(header, base[2:], other[2:], strict=True):
            net = sum(int(n) * ((to == name) - (come == name)) for _, come, to, n in moves)
            assert int(before) + net == int(after)


def test_a_run_that_recorded_its_index_and_one_that_did_not_say_so(fresh):
    old = read_comparison(fresh.path)
    assert "not found or not indexed" in evidence_tables(old)[0].header
    assert "was not recorded by this run" in evidence_sentences(old)[1]
    assert "not found or not indexed" in baseline_sentence(old)[0]
    first, *others = [plan.variant_id for plan in fresh.variants]
    write_json(fresh.variant_dir(first) / "record.json", {"not_indexed": {}})
    assert "was not recorded for B and C" in evidence_sentences(read_comparison(fresh.path))[1]
    for name in others:
        write_json(fresh.variant_dir(name) / "record.json", {"not_indexed": {"q002": [0]}})
    new = read_comparison(fresh.path)
    assert "not found" in evidence_tables(new)[0].header and not any(
        "was not recorded" in sentence for sentence in evidence_sentences(new)
    )


def test_the_screen_has_one_sentence_and_the_markdown_a_section(wide, grid):
    told = " ".join(screen(wide).split())
    assert baseline_sentence(wide)[0] in told and "--table evidence" in told
    assert "## Where evidence is lost" in to_markdown(wide)
    assert evidence_sentences(grid) == [NOTHING] and baseline_sentence(grid) == []
    assert "evidence has every" not in screen(grid) and NOTHING in to_markdown(grid)
    assert [table.rows for table in named_tables(grid)["evidence"]] == [(), (), ()]


def test_a_sentence_says_which_budget_was_short(wide):
    told = next(sentence for sentence in evidence_sentences(wide) if "final_k" in sentence)
    for name, (cut, lost) in wide.evidence.cut.items():
        assert f"{wide.codes[name]} {cut} of {lost}" in told
    assert set(wide.evidence.cut) == {
        row["variant_id"] for row in wide.evidence.by_variant.to_dict("records") if row["budget"]
    }


def test_counts_above_a_thousand_are_written_in_groups(wide):
    found = wide.evidence
    many = replace(wide)
    many.__dict__["evidence"] = replace(found, items=found.items.loc[found.items.index.repeat(40)])
    assert evidence_tables(many)[0].rows[0][1] == "1,440"
