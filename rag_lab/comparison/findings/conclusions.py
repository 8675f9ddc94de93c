"""The conclusions of a run in plain words, the first thing a reviewer reads: what differs, why, and what to doubt."""

from rag_lab._kit import wording as numbers
from rag_lab._kit.wording import counted, listing, plain, signed, some_of, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings import SAYS
from rag_lab.comparison.findings.recommendation import next_command
from rag_lab.comparison.findings.trace_findings import changes_sentences, gain_sentences, labels_wanted
from rag_lab.comparison.findings.verdict import truncation_sentences, verdict
from rag_lab.comparison.findings.verdict_sentences import main_effects, margin_sentence
from rag_lab.comparison.tables import costs, pareto, reliability, studies
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.data.labels import whole_files_sentences
from rag_lab.data.sampling import cluster_proposal, clusters_sentence
from rag_lab.evaluation.cutoff_caveats import shallow_sentences
from rag_lab.models.shared import small_model_note
from rag_lab.runs import human_input, omissions, run_manifest
from rag_lab.statistics.noise_components import noise_sentence
from rag_lab.statistics.randomization import ALPHA
from rag_lab.statistics.routing import ALL
from rag_lab.statistics.routing_ceilings import Ceiling

NOT_MEASURED = SAYS["noise_not_measured"]
COST_NAMES: dict[pareto.Cost, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars"}
MEANING = SAYS["front_meaning"].format(costs=costs)
_ARM = {"none": "no HyDE", "always": "HyDE for every question", "classified": "HyDE by class"}
_MOST = 4  # variants that are named with their share


def topics(comparison: Comparison) -> dict[str, list[str]]:
    """Return the conclusions by topic, the most important first; topics of which nothing can be said are left out."""
    metric, tables = comparison.main_metric, comparison
    if not tables.is_unlabelled and (metric is None or tables.scores.empty):
        return {"Variants": verdict(tables)}
    states = tables.manifest.get("variants", {})
    played = {v.variant_id: states.get(v.variant_id, {}).get(run_manifest.FAILOVER_KEY, {}) for v in tables.variants}
    records = (record for traces in tables.traces.values() for trace in traces for record in trace.stages)
    wrote = {record.model for record in records if record.stage == "generate"}
    preferred = [one.sentence for one in tables.preferences]
    truncated = truncation_sentences(tables)
    models = run_manifest.failover_sentences({tables.called(variant): roles for variant, roles in played.items()})
    answers = sorted({small_model_note(model, "answers of this run") for model in wrote} - {""})
    judges = [*(note.sentence for note in tables.judges), *reliability.replications(tables)]
    if tables.is_unlabelled or metric is None:  # metrics that need no labels, as a judge's, are measured all the same
        is_scored, labels = tables.is_measured, []
        if tables.is_unlabelled:
            labels = [SAYS["no_label"].format(asked=counted(tables.changes.asked, "question"))]
        found = {
            "Labels": labels,
            "Preferred": preferred,
            "What changed": changes_sentences(tables),
            "Measured": verdict(tables) if is_scored else [],
            "Not read": truncated,
            "Models": models,
            "Answers": answers,
            "Judge": judges if is_scored else [],
            "Next": [SAYS["prefer"].format(run=tables.run.name) * bool(tables.changes.most), *labels_wanted(tables)],
        }
    else:
        rule = tables.run.clusters  # what is resampled together, or what could be
        if tables.clusters is None:
            clusters = cluster_proposal(list(tables.asked.values()), rule)
        else:
            clusters = clusters_sentence(list(tables.asked), tables.clusters, rule)
        table = tables.effects.table
        told = table[(table["metric"] == metric) & (table["kind"] != "conditional")]
        is_found = told["verdict"].isin(["better", "worse"]) & (told["kind"] != "toggle")  # those are differences
        reliable = [one for one, found in zip(tables.effects.sentences(metric), is_found, strict=True) if found]
        effects = [one for one in main_effects(tables, metric) if one.word in ("not worse", "not better")]
        found = {
            "Modules": [*map(margin_sentence, effects), *reliable],
            "Variants": verdict(tables),
            "Preferred": preferred,
            "Reach": gain_sentences(tables),
            "Cost": [_front_sentence(tables, front) for front in tables.front.fronts if len(front.costs) == 1],
            "Not read": truncated,
            "Labels": whole_files_sentences(list(tables.asked.values())),
            "Cut-offs": [*shallow_sentences(tables.shallow.values()), *tables.unequal_text],
            "Clusters": [clusters],
            "Margin": [human_input.post_hoc_sentence(tables.run)],
            "Run once": omissions.same_pipeline_sentences(tables.run.same),
            "Models": models,
            "Routing": [study_conclusion(study) for study in tables.routing],
            "Answers": answers,
            "Judge": judges,
            "Noise": noise_sentences(tables)[:1],
            "Next": [next_command(tables)],
        }
    kept = {topic: [sentence for sentence in sentences if sentence] for topic, sentences in found.items()}
    return {topic: sentences for topic, sentences in kept.items() if sentences}


def conclusions(comparison: Comparison) -> list[str]:
    """Return the sentences of all topics."""
    return [sentence for sentences in topics(comparison).values() for sentence in sentences]


def noise_sentences(tables: RunTables) -> list[str]:
    """Return a sentence a metric, or one that the noise was not measured."""
    told = [noise_sentence(found, metric) for metric, found in tables.noise.items()]
    return told or [NOT_MEASURED]


def front_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence a front, who has no place, and what is missing; none where nothing was measured."""
    found = comparison.front
    if comparison.main_metric is None:
        return []
    told = [_front_sentence(comparison, front) for front in found.fronts]
    reasons: dict[str, list[str]] = {}
    for variant, reason in found.left_out.items():
        reasons.setdefault(reason, []).append(comparison.codes[variant])
    out = [f"{some_of(codes)} ({reason})" for reason, codes in reasons.items()]
    return [*told, *([f"Without a place: {'; '.join(out)}."] if out else []), *([found.note] if found.note else [])]


def share_of_resamples(share: float) -> str:
    """Write a share of resamples; what is not always is never written as 100%, nor what happens as 0%."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "< 1%" if share < 0.5 else "> 99%"
    return f"{100 * share:.0f}%"


def _front_sentence(comparison: Comparison, front: pareto.Front) -> str:
    costs = [COST_NAMES[cost] for cost in front.costs]
    members = some_of([comparison.codes[variant] for variant in front.members], 26)
    sentence = f"No variant beats {members} in {listing([comparison.directed(str(comparison.main_metric)), *costs])}."
    if not front.shares:
        units = counted(comparison.front.n_units, "question" if comparison.clusters is None else "cluster")
        return f"{sentence} {units} cannot tell how certain that is."
    moves = []
    for shares, verb in zip(front.moves, ("is beaten", "is not beaten"), strict=True):
        in_order = sorted(shares, key=shares.__getitem__, reverse=True)
        codes = [(comparison.codes[one], share_of_resamples(shares[one])) for one in in_order]
        commonest = [f"{code} {verb} in {share} of resamples" for code, share in codes[:1]]
        others = [f"{code} in {share}" for code, share in codes[1:]]
        moves += [some_of([*commonest, *others], _MOST)] if commonest else []
    return f"{sentence} Not certain: {'; '.join(moves)}." if moves else sentence


def study_conclusion(study: studies.RoutingStudy) -> str:
    """Return in a few words whether a rule that is learned from this run pays."""
    setting = f" with {study.where}" if study.where else ""
    known, one, most = study.class_ceiling, study.question_ceiling, ""
    if known is not None and known.gain is not None:
        most = f" The best rule by class would change the score by {_left(known)}, chance subtracted."
    elif one.gain is not None and one.is_of_repeats:
        most = f" A router that knows each question would change the score by {_left(one)}."
    elif one.gain is not None:
        most = f" The better arm of each question would change the score by {_left(one)}, chance subtracted."
    if study.learned is None:
        return f"No question has a class, so no routing of HyDE can be learned{setting}.{most}"
    gain = study.learned.gains["best_arm"]
    on = [name for name, hyde in study.learned.class_to_hyde.items() if hyde]
    rule = f"{setting}: the rule learned from this run is HyDE for {', '.join(on) or 'no class'}"
    by, pays = with_interval(gain.mean, gain.low, gain.high), _pays(study)
    return SAYS["rule"].format(rule=rule, metric=study.scale.named(study.metric), by=by, pays=pays) + most


def _pays(study: studies.RoutingStudy) -> str:
    """Say whether a learned rule gains, by its interval and by the classes dealt out at random; both must agree."""
    gain = study.learned.gains["best_arm"] if study.learned else None
    if gain is None or gain.mean is None or gain.ties == gain.n:
        return "they change no question" if gain and gain.mean is not None else "no question could be scored"
    low, high = sorted(study.scale.sign * (numbers.number(end) or 0.0) for end in (gain.low, gain.high))
    if high < 0:
        return "no rule learned from these questions pays"
    rare = study.p_gain is not None and study.p_gain < ALPHA
    if rare and low > 0:
        return "a rule learned from these questions pays"
    unlike = f"p {numbers.p_text(study.p_gain)} where classes are dealt out at random"
    why = f" ({unlike})" if low > 0 else f" ({unlike}, but the interval holds zero)" if rare else ""
    return f"the data cannot tell whether a rule learned from these questions pays{why}"


def study_sentences(study: studies.RoutingStudy) -> list[str]:
    """Return what the study says, the most important first."""
    setting, told, classes, found = f" with {study.where}" if study.where else "", [], 0, []
    for row in study.by_class.to_dict("records"):
        seen = with_interval(row["difference"], row["low"], row["high"])
        is_found = row["verdict"] in ("better", "worse")
        verdict = f"reliably {row['verdict']}" if is_found else row["verdict"]
        if row["query_class"] == ALL:
            told.append(
                f"{_ARM[row['arm']]}, against {_ARM[row['against']]}{setting}: {seen} in "
                f"{study.scale.named(study.metric)} over {row['n']} questions; {verdict}."
            )
            continue
        classes += 1
        if is_found:
            found.append(f"{row['query_class']} ({_ARM[row['arm']]} against {_ARM[row['against']]}: {seen})")
    if found:
        told.append(f"By class, reliable differences: {'; '.join(found)}.")
    elif classes:
        told.append("In no class is a difference reliable.")
    return [*told, *_ceiling_sentences(study), *_classifier_sentences(study)]


def _ceiling_sentences(study: studies.RoutingStudy) -> list[str]:
    one, known = study.question_ceiling, study.class_ceiling
    if one.gain is None:
        return ["No question has a score in every arm."]
    parts = {"seen": signed(one.seen), "by_chance": signed(one.by_chance), "arm": _ARM[one.best_arm], "n": one.n}
    sentence = SAYS["ceiling_of_repeats" if one.is_of_repeats else "ceiling"]
    told = [sentence.format(**parts, left=_left(one), metric=study.scale.named(study.metric))]
    if known is None or known.gain is None:
        return told
    parts = {"seen": signed(known.seen), "by_chance": signed(known.by_chance), "arm": _ARM[known.best_arm]}
    sentence = SAYS["ceiling_of_classes" if known.seen else "no_ceiling_of_classes"]
    return [*told, sentence.format(**parts, left=_left(known))]


def _left(one: Ceiling) -> str:
    return with_interval(one.gain, one.low, one.high)


def _classifier_sentences(study: studies.RoutingStudy) -> list[str]:
    """Say how often the pipeline gave the class of the dataset, and what its mistakes cost."""
    table = study.confusion
    if table is None or not (total := int(table.to_numpy().sum())):
        return []
    right = sum(int(table.loc[name, name]) for name in table.index if name in table.columns)
    told = f"The pipeline gave {right} of {total} labelled questions the dataset's class ({right / total:.0%})"
    if study.mistakes is None or study.mistakes.empty:
        return [f"{told}."]
    row = study.mistakes.iloc[0]
    if not row["n_routed_otherwise"]:
        return [f"{told}; no mistake sent a question to another arm."]
    cost, low, high = (numbers.number(row[name]) for name in ("cost", "low", "high"))
    if cost is None or low is None or high is None:
        does = f"cost {with_interval(row['cost'], low, high)} a question on average"
    elif cost == low == high == 0:
        does = "changed no score"
    else:
        does = f"cost {plain(cost)} [{numbers.signed_interval(low, high)}]"
        if cost < 0:
            does = f"gained {plain(-cost)} [{numbers.signed_interval(-high, -low)}]"
        unclear = "" if low > 0 or high < 0 else " (the data cannot tell it from chance)"
        does = f"{does}{unclear} a question on average"
    moved = f"its mistakes sent {row['n_routed_otherwise']} of {row['n']} to another arm"
    return [f"{told}; {moved}, which {does}."]
