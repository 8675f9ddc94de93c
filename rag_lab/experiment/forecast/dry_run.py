"""What a whole plan would do and its scoring would ask: every variant, every repeat, every metric."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab.corpus import folder, reading
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.evaluation import custom_metric, evaluate, registry
from rag_lab.evaluation.metric import CostlyMetric, Tools
from rag_lab.experiment.forecast import work as planned
from rag_lab.experiment.forecast.work import PartialTrace, Tally, Work, counted_tokens, dry_traces
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.questions import SEARCHES
from rag_lab.experiment.race import round_plan, with_variants
from rag_lab.experiment.stage_identities import price_of
from rag_lab.memory.results import Memory
from rag_lab.models import remembered_vectors, shared, truncation
from rag_lab.models.protocols import with_least_thinking
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question

MOST_REPLY_TOKENS = 1024  # of a judge, for RAGAs' prompts

_INDEX = "index"  # embedding the children, in chunks


def sweeps_of(plan: Plan, home: Path) -> list[Plan]:
    """Return the sweeps of which a plan's bill is made: itself, or the rounds and the proof of a race or a search.

    Nobody is dropped, which is the most it can take, and that variant wins whose proof takes the most calls and tokens.
    """
    if not plan.rounds:
        return [plan]
    sizes = {}
    for one in plan.variants[1:]:
        rows = dry_run([replace(plan, expansion=replace(plan.expansion, variants=(one,)), rounds=())], home)
        sizes[one.variant_id] = (sum(row.calls for row in rows), sum(row.tokens for row in rows))
    left = sorted(sizes, key=lambda name: sizes[name], reverse=True)
    n_rounds = 1 if plan.experiment.design in SEARCHES else len(plan.rounds)
    return [*(round_plan(plan, number, left) for number in range(1, n_rounds + 1)), with_variants(plan, left[:1])]


def dry_run(plans: Sequence[Plan], home: Path, tree: planned.PlanTree | None = None) -> list[Work]:
    """Return the work of the index, the stages and the metrics, in the order of the pipeline; shared work once.

    `tree` takes the variants with the work that each is the first to need.
    """
    tally, stages, metrics = Tally(), [_INDEX], list[str]()
    scores = Memory(home / "scores.sqlite")
    for plan in plans:
        experiment, embedding = plan.experiment, plan.expansion.baseline.config.models.embedding
        embedder = remembered_vectors.RememberedEmbedder(shared.embedder(embedding), home / "vectors.sqlite")
        judge = shared.chat_model(experiment.judge) if experiment.judge else None
        tools = Tools(judge, embedder, language=experiment.judge_language)
        built = [registry.build_metric(name, tools) for name in experiment.metrics]
        judged = [metric for metric in built if isinstance(metric, CostlyMetric) and "judge" in metric.needs]
        metrics += [metric.name for metric in judged]
        pipelines, walks, repeats = list[Pipeline](), list[list[planned.WalkStep]](), range(experiment.repeats)
        chosen, answered, located = set(plan.questions), set(plan.answered), dict[Path, list[Question]]()
        asked = [question for question in plan.dataset.questions if question.question_id in chosen]
        for variant in plan.variants:
            beside = pipelines[-1] if pipelines else None
            pipelines.append(Pipeline.planned(variant.config, plan.dataset, home=home, beside=beside))
            read = registry.reads_of(experiment.metrics, answered if variant.config.answer.is_on else ())
            walks.append(planned.walk(pipelines[-1], asked, answered, read, scored=bool(judged)))
        tally.to_come.update((key, repeat) for steps in walks for key, _, _ in steps for repeat in repeats)
        varied = {key for variant in plan.variants for key in variant.changes}
        for variant, pipeline, walk in zip(plan.variants, pipelines, walks, strict=True):
            known = {(work.purpose, work.model, work.unit): work.n for work in tally.work}
            stages += [stage.name for stage in pipeline.stages]
            _count_index(pipeline, tally)
            index = pipeline.index
            if walk and index.path not in located:  # a metric may read where the evidence lies
                located[index.path] = pipeline.locate(asked)[0] if index.is_built else asked
            begin = located.get(index.path, ())
            traces = [one for repeat in repeats for one in dry_traces(pipeline, begin, repeat, walk, tally)]
            for metric in judged:
                _count_scores(metric, traces, scores, tally, experiment.judge or "")
            if tree is not None:
                settings = {key: value for key, value in variant.config.flat().items() if key in varied}
                steps = [(_INDEX, str(pipeline.index.path))]
                steps += [(stage.name, digest(stage.identity())) for stage in pipeline.stages]
                new, names = dict[str, list[Work]](), {name for name, _ in steps}
                for work in tally.work:
                    if n := work.n - known.get((work.purpose, work.model, work.unit), 0):
                        new.setdefault(work.purpose if work.purpose in names else "", []).append(replace(work, n=n))
                steps.append(("", variant.variant_id))
                tree.setdefault(variant.variant_id, planned.VariantPath(variant.variant_id, settings, steps, new))
    order = [*stages, *metrics]
    return sorted(tally.work, key=lambda work: order.index(work.purpose))


def _count_index(pipeline: Pipeline, tally: Tally) -> None:
    """Count the chunks, or the files, that a variant's index is to be made of."""
    config, index = pipeline.config, pipeline.index
    if not index.is_built:  # a model reads or splits the files: the chunks are not known yet, and files count
        if tally.is_new(str(index.path)):
            model = config.models.vision if config.corpus.pdf == "vision" else config.models.embedding
            files = folder.list_files(index.corpus_dir, {*reading.LOADERS, *config.corpus.readers}).files
            tally.add(Work(_INDEX, model, "file", len(files)))
    else:
        if index.contexts.model is not None:
            _count_contexts(index, tally)
        if (
            config.searches_vectors
            and not index.has_vectors
            and tally.is_new(digest([index.digest, index.vectors_identity]))
        ):
            children = index.chunks.children()
            known: Mapping[str, str | None] = {f"{index.path} {one.chunk_id}": one.text for one in children}
            if index.contexts.kind != "late":  # whose vectors belong to documents: all may be new
                known = index.vectors.embedder.known_documents(index.searched_texts(children))
            texts = [text for key, text in known.items() if tally.is_new(key)]
            new, name = [text for text in texts if text is not None], config.models.embedding
            work = Work(_INDEX, name, "chunk", len(new), remembered=len(texts) - len(new))
            is_priced = price_of(name, embeds=True) not in (None, "free")
            n_tokens = sum(map(truncation.estimated_tokens, new)) if is_priced else 0
            tally.add(replace(work, embedded_tokens=n_tokens, embedded_chars=sum(map(len, new))))


def _count_contexts(index: CorpusIndex, tally: Tally) -> None:
    """Put in the tally the calls for what stands before the chunks where they are searched."""
    contexts, chunks = index.contexts, index.chunks
    asked = {key: one for _, key, one in contexts.asked(chunks.documents(), chunks.children()) if tally.is_new(key)}
    known = contexts.memory.recall(asked) if contexts.memory else {}
    new = [one for key, one in asked.items() if key not in known]
    tokens = {text: truncation.estimated_tokens(text) for text in {one.document for one in new}}
    bare = [replace(one, document="").request() for one in new]
    thinking = [with_least_thinking(contexts.model, request) for request in bare]
    work = Work(_INDEX, shared.spec_of(contexts.model), "call", len(new), remembered=len(known))
    n_read = sum(map(truncation.request_tokens, bare)) + sum(tokens[one.document] for one in new)
    n_written, n_thought = sum(one.most_tokens_out for one in thinking), sum(one.thinking_tokens for one in thinking)
    tally.add(replace(work, tokens_in=n_read, tokens_out=n_written, thinking_tokens=n_thought))


def _count_scores(
    metric: CostlyMetric, traces: Sequence[PartialTrace], memory: Memory, tally: Tally, judge: str
) -> None:
    """Put in the tally the calls for those scores of `metric` that must be made: of its own judge, or of the run's."""
    identity, keyed = digest(dict(metric.identity())), dict[str, PartialTrace]()
    # How often a custom metric asks that does not say so nobody knows.
    if isinstance(metric, custom_metric.CustomMetric):
        reads, n_calls = metric.info.reads, metric.info.calls
        calls = None if n_calls is None else registry.JudgeCalls(n_calls, 0, 0)
    else:
        parsed = registry.parse_name(metric.name)
        reads, judge = parsed.info.reads, parsed.judge or judge
        calls = registry.CALLS[parsed.info.name]
    thinking: int = getattr(judge and shared.chat_model(judge), "least_thinking_tokens", 0)  # that it cannot leave out
    for each in traces:
        if (key := evaluate.score_key(metric, identity, each.trace)) is not None:
            # The keys that stand for the open fields that it depends on belong to the score's key.
            waits = {path: open_key for path, open_key in each.open.items() if {path, path.partition(".")[0]} & reads}
            keyed[digest([key, waits]) if waits else key] = each
    known = memory.recall(keyed)
    nothing = Work(metric.name, judge, "score" if calls is None else "call")
    for key, each in keyed.items():
        if not tally.is_new(key):
            continue
        if key in known:
            tally.add(replace(nothing, remembered=1))
        elif calls is None:
            tally.add(replace(nothing, n=1, cost_usd=None, minutes=None))
        else:  # at most: scores that ask the judge the same thing share its reply
            n = calls.fixed + calls.a_passage * len(each.trace.passages)
            texts = sum(map(counted_tokens, _texts(metric.reads(each.trace))))
            work = replace(nothing, n=n, at_most=True, tokens_in=n * (calls.prompt_tokens + texts))
            tokens_out = n * (MOST_REPLY_TOKENS + thinking)
            tally.add(replace(work, tokens_out=tokens_out, thinking_tokens=n * thinking))


def _texts(value: Any) -> list[str]:
    """Return the texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence) else ()
    return [text for each in inner for text in _texts(each)]
