import xml.etree.ElementTree as ET

from small_plans import CHAT, install_doubles, write_plan

from rag_lab._kit.home import home
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.forecast.describe import describe
from rag_lab.experiment.forecast.dry_run import dry_run
from rag_lab.experiment.forecast.work import PlanTree, VariantPath, Work, branch_of
from rag_lab.models.truncation import request_tokens
from rag_lab.pipeline import Pipeline
from rag_lab.report.plan_tree import TREE_FILE, Branch, plan_tree_of, plan_tree_svg, tree_lines
from rag_lab.runs.run_folder import read_record, write_json


def grown():
    paths = []
    for rewrite, rerank in [("none", "none"), ("none", "ql"), ("llm", "none"), ("llm", "ql")]:
        name, settings = f"{rewrite}-{rerank}", {"query.rewrite": rewrite, "rerank.name": rerank}
        steps = [("index", "i"), ("rewrite", rewrite), ("search", "s"), ("rerank", rerank), ("", name)]
        work = {"rewrite": [Work("rewrite", "m", "call", 12)]} if name == "llm-none" else {}
        if rerank == "ql":
            work["rerank"] = [Work("rerank", "q", "pair", 60, at_most=rewrite == "llm")]
        paths.append(VariantPath(name, settings, steps, work))
    return branch_of(paths)


def test_variants_part_at_the_first_stage_in_which_they_differ_with_the_work_of_each_branch():
    assert tree_lines(grown()) == [
        "alike: 4 variants",
        "├─ rewrite: rewrite = none: 2 variants",
        "│  ├─ rerank: none-none",
        "│  └─ rerank: none-ql (60 pairs)",
        "└─ rewrite: rewrite = llm: 2 variants, 12 calls",
        "   ├─ rerank: llm-none",
        "   └─ rerank: llm-ql (≤ 60 pairs)",
    ]
    assert tree_lines(grown(), most=4)[-1] == "… 4 more branches"


def test_the_figure_draws_each_branch_once_and_escapes_what_it_shows(tmp_path):
    drawn = ET.fromstring(plan_tree_svg(grown()))  # noqa: S314 (made here)
    name = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{name}circle")) == 7 and len(drawn.findall(f"{name}path")) == 6
    evil = Branch("", "", 2, branches=(Branch("<script>", "a", 1), Branch("b", "a", 1)))
    assert "<script>" not in plan_tree_svg(evil) and "&lt;script&gt;" in plan_tree_svg(evil)
    assert plan_tree_of(tmp_path) == ""
    write_json(tmp_path / TREE_FILE, grown())
    assert read_record(tmp_path / TREE_FILE, Branch, "") == grown() and "<svg" in plan_tree_of(tmp_path)
    (tmp_path / "tree.json").write_text("[]")
    assert plan_tree_of(tmp_path) == ""


def test_the_work_on_all_branches_is_that_of_the_bill(tmp_path, monkeypatch):
    install_doubles(monkeypatch)
    factors = {"query.rewrite": ["none", "llm"], "query.hyde": ["none", "always"]}
    planned = write_plan(tmp_path, factors=factors, design="grid")
    paths = PlanTree()
    bill = estimate(planned, tree=paths)

    def calls(branch):
        return dict(branch.work).get("call", 0) + sum(map(calls, branch.branches))

    tree = branch_of([*paths.values()])
    assert calls(tree) == bill.calls > 0
    assert tree.variants == len(planned.variants) == 4
    assert "Stages that variants share, with what is left to do on each branch:" in describe(planned)
    assert "<svg" in planned._repr_html_() and "├─" in str(planned)


def test_what_a_model_writes_before_the_chunks_is_counted_once_and_no_model_is_asked(tmp_path, monkeypatch):
    doubles = install_doubles(monkeypatch)
    base = {"corpus": {"context": "llm"}, "retrieval": {"mode": "bm25"}, "answer": {"name": "none"}}
    base["models"] = {"understanding": CHAT}
    checked = write_plan(
        tmp_path, base=base, factors={"retrieval.analyzer": ["english", "german"]}, metrics=["retrieval.ndcg@5"]
    )
    (row,) = [row for row in dry_run([checked], home()) if row.purpose == "index"]
    pipeline = Pipeline(checked.dataset, checked.variants[0].config, home=home())
    n_chunks = pipeline.index.manifest.n_children
    assert (row.unit, row.n, row.remembered) == ("call", n_chunks, 0) and doubles.chat.requests == []
    pipeline.prepare()
    asked = doubles.chat.requests
    assert len(asked) == n_chunks and row.tokens_in >= sum(map(request_tokens, asked))
    assert row.tokens_out == sum(request.max_tokens for request in asked)
    (row,) = [row for row in dry_run([checked], home()) if row.purpose == "index"]
    assert (row.n, row.remembered) == (0, n_chunks)
