from rag_lab.runs.run_once import MOST, SamePipeline, run_once_told


def test_combinations_of_one_reason_are_told_together_and_others_alone():
    why = "no search is by words"
    many = [SamePipeline(f"analyzer = {n}", {"retrieval.analyzer": str(n)}, "baseline", why) for n in range(7)]
    alone = SamePipeline("seed = 1", {"seed": 1}, "baseline", "no reply of a model is sampled")
    twins = [SamePipeline(name, {}, "a") for name in "bc"]
    told = run_once_told([*many, alone, *twins])
    assert told == [
        "7 combinations are the same pipelines as others by construction and are run once, since no search is by "
        "words: " + "; ".join(f"analyzer = {n} as baseline" for n in range(MOST)) + "; and 3 more.",
        "seed = 1 is the same pipeline as baseline by construction and is run once: no reply of a model is sampled.",
        "b is the same pipeline as a and is run once.",
        "c is the same pipeline as a and is run once.",
    ]
    assert run_once_told([]) == []
