import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from rag_lab.statistics.noise_components import NoiseComponents, components, noise, noise_floor, noise_sentence


def simulated(
    random: np.random.Generator, n: int, repeats: int, judgements: int, sds: tuple[float, float, float]
) -> pd.DataFrame:
    question, generation, judge = sds
    values = (
        random.normal(0.5, question, (n, 1, 1))
        + random.normal(0, generation, (n, repeats, 1))
        + random.normal(0, judge, (n, repeats, judgements))
    )
    q, r, j = (index.ravel() for index in np.indices(values.shape))
    return pd.DataFrame({"value": values.ravel(), "q": q, "r": r, "j": j})


def found_in(table: pd.DataFrame) -> NoiseComponents:
    return components(list(table["value"]), list(table["q"]), list(table["r"]))


def test_known_components_come_back_without_bias_with_and_without_gaps() -> None:
    random = np.random.default_rng(0)
    whole, gaps = [], []
    for _ in range(40):
        table = simulated(random, 60, 3, 2, (0.3, 0.2, 0.1))
        for into, part in ((whole, table), (gaps, table.sample(frac=0.7, random_state=1))):
            one = found_in(part)
            into.append((one.question, one.generation, one.judge))
    for estimates in (whole, gaps):
        assert np.mean(estimates, axis=0) == pytest.approx([0.09, 0.04, 0.01], rel=0.12)


def test_a_balanced_layout_agrees_with_restricted_maximum_likelihood() -> None:
    table = simulated(np.random.default_rng(1), 50, 3, 1, (0.3, 0.2, 0.0))
    fit = MixedLM(table["value"], np.ones((len(table), 1)), groups=table["q"]).fit(reml=True)
    found = found_in(table)
    assert found.question == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=1e-3)
    assert found.generation == pytest.approx(float(fit.scale), rel=1e-3)
    assert found.judge is None


def test_by_hand() -> None:
    # Means 0 and 1; within a question +-0.1: mean square 0.02; between: 2 * (0.5**2 * 2) / 1 = 1, less the noise.
    found = components([-0.1, 0.1, 0.9, 1.1], ["a", "a", "b", "b"], [0, 1, 0, 1])
    assert found.generation == pytest.approx(0.02)
    assert found.question == pytest.approx((1.0 - 0.02) / 2)
    floor = noise_floor(found)
    assert floor.value == pytest.approx(1.959964 * np.sqrt(2 * (0.02 / 2) / 2))


def test_noise_alone_stays_below_the_floor_19_times_in_20() -> None:
    random = np.random.default_rng(2)
    floor = noise_floor(found_in(simulated(random, 300, 3, 2, (0.3, 0.2, 0.1))))
    below = []
    for _ in range(400):
        noise_of_two = [simulated(random, 300, 3, 2, (0.0, 0.2, 0.1))["value"].mean() for _ in range(2)]
        below.append(abs(noise_of_two[0] - noise_of_two[1]) < floor.value)
    assert 0.92 <= np.mean(below) <= 0.98


def test_a_layout_tells_the_noise_that_it_repeats() -> None:
    single = components([0.1, 0.5, 0.9], ["a", "b", "c"], [0, 0, 0])
    assert (single.generation, single.judge, noise_floor(single).value) == (None, None, None)
    said = "The noise of m was not measured: no question has two scores under one variant."
    assert noise_sentence(single, "m") == said
    judged = components([0.4, 0.6, 0.8, 1.0], ["a", "a", "b", "b"], [0] * 4)
    assert judged.judge == pytest.approx(0.02) and judged.generation is None
    assert noise_floor(judged).reason == "noise of the judge, over 2 questions"


def test_variants_are_pooled_and_order_does_not_matter() -> None:
    random = np.random.default_rng(4)
    parts = [
        simulated(random, 40, 2, 1, (0.3, sd, 0.0)).assign(variant_id=name) for name, sd in (("a", 0.1), ("b", 0.2))
    ]
    scores = pd.concat(parts).rename(columns={"q": "question_id", "r": "repeat"})
    scores = scores.assign(metric="m", status="scored", reason="")
    found = noise(scores, "m")
    alone = [found_in(part).generation for part in parts]
    assert found.generation == pytest.approx(np.mean(alone))
    assert noise(scores.sample(frac=1, random_state=0), "m") == found
    assert noise_sentence(found, "m").startswith("The variance of m is ")
    assert "generation and judge together" in noise_sentence(found, "m")
    assert noise_sentence(noise(scores, "absent"), "absent").endswith("not measured: no question was scored.")


def test_identical_repeats_have_no_noise() -> None:
    found = components([0.3, 0.3, 0.7, 0.7], ["a", "a", "b", "b"], [0, 1, 0, 1])
    assert noise_floor(found).value == 0.0
    assert noise_sentence(found, "m") == "m has no noise: repeats of a question have identical scores."
    assert noise_sentence(components([0.5] * 2, ["a"] * 2, [0, 1]), "m").startswith("m has no noise")
