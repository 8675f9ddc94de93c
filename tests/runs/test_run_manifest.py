from rag_lab.runs.run_manifest import answering_models, failover_sentences

TEXT = "ollama:a | gemini:b"


def test_a_run_without_stand_ins_says_nothing():
    assert failover_sentences({"A (base)": {}, "B (x)": {}}) == []


def test_one_model_for_all_variants_is_named():
    assert failover_sentences({"A": {TEXT: ["ollama:a"]}, "B": {TEXT: ["ollama:a"]}}) == [
        "Of ollama:a | gemini:b, ollama:a played the role throughout."
    ]
    assert failover_sentences({"A": {TEXT: ["gemini:b"]}, "B": {}}) == [
        "Of ollama:a | gemini:b, gemini:b played the role throughout, since ollama:a did not answer."
    ]


def test_variants_of_several_models_are_told_apart():
    (told,) = failover_sentences({"A": {TEXT: ["ollama:a"]}, "B": {TEXT: ["gemini:b"]}, "C": {TEXT: ["gemini:b"]}})
    assert "ollama:a in A and gemini:b in B and C" in told
    assert told.endswith("may be the model's doing.")


def test_who_wrote_is_who_played_and_of_one_model_that_one():
    variants = [{TEXT: ["ollama:a"]}, {}, {TEXT: ["gemini:b", "ollama:a"]}]
    assert answering_models(TEXT, variants) == ["ollama:a", "gemini:b"]
    assert answering_models("llamacpp:smollm2", variants) == ["llamacpp:smollm2"]
