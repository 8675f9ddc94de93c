"""Nothing that an asker may not see stands anywhere in a trace, whatever the pipeline and the rights are.

The real pipeline runs over real files; the models are scripted so that they would repeat whatever they are shown.
"""

import re

from access_corpus import BASE, N_FILES, ask, models, name_of, write_corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rag_lab.access import may_see
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.memory.results import Memory
from rag_lab.pipeline import Pipeline
from rag_lab.records import Trace
from rag_lab.testing import HashEmbedder

__all__ = ["models"]  # a fixture

namespaces = st.sampled_from(["", "north", "south"])
groups = st.lists(st.sampled_from(["staff", "audit"]), unique=True, max_size=2).map(tuple)
owners = st.lists(st.tuples(namespaces, groups), min_size=N_FILES, max_size=N_FILES)
askers = st.tuples(st.none() | groups, st.none() | namespaces)
configs = st.fixed_dictionaries(
    {
        "retrieval.mode": st.sampled_from(["dense", "bm25", "tfidf", "hybrid", "multi", "rrf"]),
        "retrieval.level": st.sampled_from(["child", "parent", "document"]),
        "corpus.parents": st.sampled_from(["page", "neighbours", "none"]),
        "query.hyde": st.sampled_from(["none", "always", "classified"]),
        "query.phrasings": st.sampled_from([0, 2]),
        "rerank.name": st.sampled_from(["none", "cross_encoder"]),
        "select.cut": st.sampled_from(["none", "knee"]),
        "select.diversity": st.sampled_from(["none", "mmr"]),
    }
)


def run(folder, owned, config, question):
    home = folder / "home"
    index = open_index(write_corpus(folder, owned), config.corpus, HashEmbedder(), home=home, store=config.store)
    pipeline = Pipeline.on(index, HashEmbedder(), config, Memory(home / "stages.sqlite"))
    return pipeline.run([question])[0]


@given(owners, askers, configs)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_field_of_a_trace_holds_what_the_asker_may_not_see(models, tmp_path_factory, owned, asker, changes):
    question = ask(*asker)
    config = PipelineConfig().override(BASE | changes | {"answer.context_tokens": 100_000})
    trace = run(tmp_path_factory.mktemp("access"), owned, config, question)
    assert trace.failure is None
    everything = TypeAdapter(Trace).dump_json(trace).decode() + trace._repr_html_()
    visible = {number for number, attributes in enumerate(owned) if may_see(question, *attributes)}
    for pattern in (r"marker(\d)end", r"file(\d)name"):
        assert {int(number) for number in re.findall(pattern, everything)} <= visible
    assert {hit.source for hit in trace.base_hits} == {name_of(number) for number in visible}
    if changes["select.cut"] == "none":
        assert {passage.source for passage in trace.passages} == {name_of(number) for number in visible}


def test_the_marks_would_show(models, tmp_path):
    config = PipelineConfig().override(BASE | {"answer.context_tokens": 100_000})
    trace = run(tmp_path, [("", ())] * N_FILES, config, ask())
    assert set(re.findall(r"marker(\d)end", trace.answer.text)) == set("01234")
    assert len(trace.question.evidence) == N_FILES


def test_rights_are_part_of_what_is_remembered(models, tmp_path):
    """The same question by another asker is not answered from the memory of the first."""
    config = PipelineConfig().override(BASE)
    corpus = write_corpus(tmp_path, [("", ("staff",)), *[("", ())] * (N_FILES - 1)])
    index = open_index(corpus, config.corpus, HashEmbedder(), home=tmp_path / "home", store=config.store)
    pipeline = Pipeline.on(index, HashEmbedder(), config, Memory(tmp_path / "home" / "stages.sqlite"))
    found = [{hit.source for hit in pipeline.run([ask(held)])[0].base_hits} for held in (None, (), ("staff",))]
    assert name_of(0) in found[0] and name_of(0) not in found[1] and found[2] == found[0]


def test_one_question_can_be_asked_with_rights(models, tmp_path):
    config = PipelineConfig().override(BASE)
    corpus = write_corpus(tmp_path, [("north", ()), ("north", ("staff",)), *[("", ())] * (N_FILES - 2)])
    index = open_index(corpus, config.corpus, HashEmbedder(), home=tmp_path / "home", store=config.store)
    pipeline = Pipeline.on(index, HashEmbedder(), config)
    text = "At how many bar does the press run?"
    assert {hit.source for hit in pipeline.ask(text, (), "north").base_hits} == {name_of(0)}
    assert {hit.source for hit in pipeline.ask(text, ("staff",), "north").base_hits} == {name_of(0), name_of(1)}
    assert pipeline.ask(text, namespace="nowhere").base_hits == ()
