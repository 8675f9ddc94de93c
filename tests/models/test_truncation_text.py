import pytest

from rag_lab.models.truncation import Truncation, percent, short_name


def test_lengths_become_shares():
    found = Truncation.of([100, 256, 300, 512], characters=4672, limit=256)
    assert found == Truncation(256, 4, 2, 4672, 1168, 44 + 256)
    assert (found.share_longer, found.share_truncated, found.characters_read) == (0.5, 300 / 1168, 1020)
    assert found.text("the chunks", "sentence_transformers:minilm?device=cpu") == (
        "50% of the chunks are longer than minilm reads (256 tokens, here about 1,020 characters)"
    )


def test_of_nothing_nothing_is_cut():
    nothing = Truncation.of([], 0, 256)
    assert (nothing.share_longer, nothing.share_truncated, nothing.characters_read) == (0, 0, 0)


@pytest.mark.parametrize(
    ("share", "told"),
    [(0, "0%"), (1, "100%"), (0.0001, "0.1%"), (0.004, "0.4%"), (0.614, "61%"), (0.9999, "99%"), (0.0149, "1%")],
)
def test_what_is_cut_is_never_told_as_nothing_nor_what_is_read_as_nothing(share, told):
    assert percent(share) == told


def test_a_model_without_a_provider_keeps_its_name():
    assert [short_name(name) for name in ("mine", "mine:Embedder?k=1", "openai:a:b")] == ["mine", "Embedder", "a:b"]
