"""What a race or a search says of itself: how the winner was chosen and proven, and what that cost."""

from collections.abc import Sequence

from rag_lab._kit.wording import counted, listing, plain, signed, some_of
from rag_lab.comparison.findings import SAYS
from rag_lab.runs.run_manifest import Cost, RaceRecord, Standing


def race_sentences(race: RaceRecord, proof: Cost) -> list[str]:
    """Return what a reader must know of a race or a search beside its tables; `proof` is what the proof took."""
    rows = [one for _, _, one in dropped(race)]
    told = [race.stopped] if race.stopped else [_how(race)]
    told += _race_details(race, proof, rows) if race.design == "racing" else _search_details(race, proof, rows)
    if unscored := [one.variant_id for one in rows if one.rank is None]:
        told.append(f"Dropped without any score: {some_of(unscored)}.")
    return told


def dropped(race: RaceRecord) -> list[tuple[int, int, Standing]]:
    """Return every variant that was dropped, as (round, its questions, how it stood), the last dropped first."""
    rounds = enumerate(race.rounds, start=1)
    found = [(number, done.n_questions, one) for number, done in rounds for one in done.dropped]
    return sorted(found, key=lambda row: -row[0])


def _how(race: RaceRecord) -> str:
    """Say how the variants were chosen from."""
    if race.design == "optuna":
        n, folder = (len(race.rounds[0].standings), race.rounds[0].folder) if race.rounds else (0, "rounds/1")
        goals = listing(list(race.objectives))
        return SAYS["trials"].format(variants=counted(n, "variant"), objectives=goals, folder=folder)
    if race.design != "racing":
        best = ["baseline", *(one.standings[0].variant_id for one in race.rounds)]
        moves = zip(race.rounds, best, best[1:], strict=False)
        changed = [one.title for one, before, after in moves if after != before]
        found = f"better was found in {listing(changed)}" if changed else "no stage found anything better"
        titles = listing([one.title for one in race.rounds]) if race.rounds else "none yet"
        return SAYS["stages"].format(titles=titles, metric=race.metric, found=found)
    sizes = [f"{n:,}" for n in race.sizes[: len(race.rounds) if race.winner else None]]
    rounds = f"{counted(len(sizes), 'round')} of {listing(sizes)} questions"
    if not race.winner:
        return f"{race.n_variants} variants race in {rounds}; none has won yet."
    return SAYS["raced"].format(race=race, rounds=rounds)


def _race_details(race: RaceRecord, proof: Cost, rows: Sequence[Standing]) -> list[str]:
    """Say what a race saved and cost, how surely what it dropped is worse, and what was neither dropped nor proven."""
    told, took, full = [], race.cost + proof, race.full
    if race.rounds:
        told.append(SAYS["saved"].format(race=race, saved=1 - race.n_asked / race.n_full))
    if full.calls or took.calls:
        wanted = f" and {full.cost_usd:,.2f} USD" if full.cost_usd else ""
        told.append(SAYS["took"].format(took=_calls_text(took), full=full, usd=wanted))
    if worse := [one for one in rows if one.behind]:
        chance = "" if race.error is None else f" {SAYS['best_dropped'].format(error=race.error)}"
        who = f"{counted(len(worse), 'dropped variant')} {'has' if len(worse) == 1 else 'have'}"
        told.append(SAYS["given_up"].format(who=who, metric=race.metric) + chance)
    elif race.winner:
        told.append("No variant was shown to be worse than another.")
    last = [one.variant_id for one in race.rounds[-1].standings if one.stays] if race.winner else []
    if names := [name for name in last if name not in (race.winner, race.baseline)]:
        told.append(f"Neither dropped nor proven, as another has the best mean: {some_of(names)}.")
    return told


def _search_details(race: RaceRecord, proof: Cost, rows: Sequence[Standing]) -> list[str]:
    """Say that means on questions that chose are no evidence, what is, the cost, and what was decided narrowly."""
    told, took = [], race.cost + proof
    if race.winner:
        winner = SAYS["winner_of_stages" if race.design == "staged" else "winner"]
        told = [SAYS["exploratory"].format(n=race.sizes[0]), winner.format(race=race)]
    if took.calls:
        told.append(f"Search and proof took {_calls_text(took)}.")
    decided = [(number, done.closest) for number, done in enumerate(race.rounds, start=1)]
    # Of a decision between equals the next sentence tells.
    if near := [(number, one) for number, one in decided if one is not None and one.error]:
        number, one = min(near, key=lambda row: row[1].difference / row[1].error)
        by, error = signed(one.difference), plain(one.error)
        told.append(SAYS["closest"].format(number=number, one=one, by=by, error=error))
    if tied := [one.variant_id for one in rows if one.is_tied]:
        told.append(SAYS["tied"].format(names=some_of(tied)))
    return told


def _calls_text(took: Cost) -> str:
    dollars = f" and {took.cost_usd:,.2f} USD" if took.cost_usd else ""
    return f"{took.calls:,} calls of chat models with {took.tokens:,} tokens{dollars}"
