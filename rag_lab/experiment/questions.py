"""Which questions are asked and answered; in races and searches, which choose, and a proof that shares none."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rag_lab._kit.wording import counted, listing
from rag_lab.data.sampling import clusters_of, shuffled, stratified
from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import ParsedName, applies, parse_name
from rag_lab.experiment.built_in_designs import MIN_ROUND, OPTUNA, RACING, STAGED, RaceConfig, stages_of
from rag_lab.experiment.config import SAYS, ExperimentConfig
from rag_lab.experiment.design import ExperimentError
from rag_lab.records import Question

MIN_PROOF = 30  # questions; on fewer hardly anything can be shown
MIN_CLUSTERS = 8  # of the proof, where questions are in clusters
SHARES = (0.15, 0.35)  # of the questions, for rounds that nobody gave; see benchmarks/racing.py
CHOSE = "that choose among the variants before the proof"
BESIDE = "in clusters of which others choose before the proof"
SEARCHES = (STAGED, OPTUNA)  # designs that make their variants as they go, all on the same questions


def choose_questions(
    questions: Sequence[Question],
    experiment: ExperimentConfig,
    answers: bool = True,
    metrics: Sequence[ParsedName] | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids to ask and, among them, those to answer (none without `answers`), in the order of the dataset.

    Samples are stratified and depend on the seed and the questions alone. A question that has no answer is asked only
    where it is answered, since retrieval cannot be measured on it, or where a metric asks what its asker was shown;
    another takes its place in the sample. `metrics` stand in place of the experiment's, whose names say nothing of an
    object in memory.
    """
    drawn = stratified(questions, len(questions), experiment.seed)
    n_asked = len(drawn) if experiment.limits.questions is None else experiment.limits.questions
    n_answered = n_asked if experiment.limits.answers is None else min(experiment.limits.answers, n_asked)
    answered = set(drawn[: n_answered if answers else 0])
    known = [parse_name(name) for name in experiment.metrics] if metrics is None else metrics
    of_rights = [metric for metric in known if "rights" in metric.info.needs]
    measured = {
        question.question_id
        for question in questions
        if question.answerable or any(applies(metric, question, False) for metric in of_rights)
    } | answered
    asked = set([question_id for question_id in drawn if question_id in measured][:n_asked])
    ids = [question.question_id for question in questions]
    return tuple(name for name in ids if name in asked), tuple(name for name in ids if name in answered)


@dataclass(frozen=True, slots=True)
class RaceQuestions:
    """The ids of a race. Each round begins with those of the one before; `apart` are not asked in the proof, by why."""

    rounds: tuple[tuple[str, ...], ...]
    proof: tuple[str, ...]
    answered: tuple[str, ...]  # in the proof
    apart: Mapping[str, frozenset[str]]


def deciding(metrics: Sequence[str]) -> ParsedName | None:
    """Return the metric that decides a race, the first that is no cost; None without one."""
    return next((metric for metric in map(parse_name, metrics) if not metric.info.is_cost), None)


def race_questions(questions: Sequence[Question], experiment: ExperimentConfig, answers: bool = True) -> RaceQuestions:
    """Return the questions of the rounds and of the proof; samples are fixed by seed and questions.

    The rounds hold questions to which the deciding metric applies, and whole clusters of them. Those of a race are
    drawn by lot, which its bounds assume; what chooses in a search, and the proof, are stratified.
    """
    metric = deciding(experiment.metrics)
    if metric is None:
        raise ExperimentError("race", ["race: no metric decides who is dropped; give one that measures no cost first."])
    if experiment.design == RACING and metric.info.scale.width is None:
        raise ExperimentError("race", [SAYS["no_range"].format(metric=metric.name)])
    usable = [one for one in questions if applies(metric, one, answers)]
    limits = [experiment.limits.questions, experiment.limits.answers if metric.info.reads_answers else None]
    most = min([len(usable), *(n for n in limits if n is not None)])
    first, race = max(MIN_ROUND, round(SHARES[0] * most)), experiment.race or RaceConfig()
    sizes = tuple(race.rounds) or (first, max(2 * first, round(SHARES[1] * most)))
    if experiment.design in SEARCHES:
        sizes = (experiment.choose or max(MIN_ROUND, round(SHARES[1] * most)),)
    if (needed := sizes[-1] + MIN_PROOF) > most:
        n_text = counted(sizes[-1], "question")
        choose, shorter = f"choose: {n_text} choose", "let fewer choose"
        if experiment.design == RACING:
            choose, shorter = f"race: the rounds take {n_text}", "give shorter rounds"
        of = {"choose": choose, "others": MIN_PROOF, "needed": needed, "metric": metric.name, "most": most}
        raise ExperimentError("race", [SAYS["too_few"].format(**of, shorter=shorter)])
    clusters, by_lot = clusters_of(questions, experiment.clusters) or {}, experiment.design == RACING
    drawn = shuffled(usable, experiment.seed) if by_lot else stratified(usable, len(usable), experiment.seed)
    units: dict[tuple[str, str], list[str]] = {}  # clusters stay whole, so that a round may hold a few more
    for name in drawn:
        units.setdefault(("cluster", clusters[name]) if name in clusters else ("question", name), []).append(name)
    taken, waiting, rounds = list[str](), iter(units.values()), tuple[tuple[str, ...], ...]()
    for size in sizes:
        while len(taken) < size and (unit := next(waiting, None)):
            taken += unit
        rounds = (*rounds, tuple(taken))
    if experiment.design == STAGED:
        rounds = rounds * max(1, len(stages_of(experiment.factors)))
    chose = frozenset(rounds[-1])
    shared = {clusters[name] for name in chose if name in clusters}
    beside = frozenset(name for name, cluster in clusters.items() if cluster in shared) - chose
    others = [one for one in questions if one.question_id not in chose | beside]
    given = experiment.limits
    left = {"questions": given.questions} | ({"answers": given.answers} if metric.info.reads_answers else {})
    of_proof = given.model_copy(update={name: n and max(0, n - len(chose)) for name, n in left.items()})
    proof, answered = choose_questions(others, experiment.model_copy(update={"limits": of_proof}), answers)
    asked = [one for one in others if one.question_id in set(proof)]
    scored = [one.question_id for one in asked if applies(metric, one, one.question_id in set(answered))]
    n_clusters = len({clusters.get(name, ("alone", name)) for name in scored})
    if len(scored) < MIN_PROOF or (clusters and n_clusters < MIN_CLUSTERS):
        found, wanted = counted(len(scored), "question"), counted(MIN_PROOF, "question")
        if clusters:
            found, wanted = f"{found} in {counted(n_clusters, 'cluster')}", f"{wanted} in {MIN_CLUSTERS} clusters"
        who, shorter = "race: the rounds", "give shorter rounds"
        if experiment.design in SEARCHES:
            who, shorter = "choose: those that choose", "let fewer choose"
        of = {"who": who, "n": counted(len(chose), "question"), "found": found, "metric": metric.name}
        raise ExperimentError("race", [SAYS["short_proof"].format(**of, needed=wanted, shorter=shorter)])
    return RaceQuestions(rounds, proof, answered, {CHOSE: chose} | ({BESIDE: beside} if beside else {}))


def objective_problems(experiment: ExperimentConfig) -> list[str]:
    """Return a sentence for each thing that is wrong with the objectives of a search by trials."""
    if experiment.design != OPTUNA:
        return []
    given, metrics = experiment.objectives or experiment.metrics[:2], experiment.metrics
    found = [
        f"objectives: {name} is none of the metrics, which are {listing(metrics) if metrics else 'none'}; put it there."
        for name in given
        if name not in metrics
    ]
    with suppress(ConfigError):  # which the check of the metrics says
        first = deciding(metrics)
        names = {name for name in metrics if first and deciding([name]) and deciding([name]) == first}
        if first and not found and not names & set(given):
            found.append(SAYS["objectives"].format(metric=first.name))
    return found
