import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.truncation import estimated_tokens

TEXTS = [
    "The press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.",
    "| Part | No. |\n|---|---|\n| Filter | F-1204/B |\n",
    "def f(x):\n    return x ** 2\n",
    "Überprüfung der Dichtungen; 3,5 mm ≤ Spalt.",
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_an_upper_estimate(text):
    tokenizers = pytest.importorskip("tokenizers")
    from rag_lab.models.weights import packaged

    tokenizer = tokenizers.Tokenizer.from_file(str(packaged("minilm") / "tokenizer.json"))
    tokenizer.no_padding()
    exact = len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert exact <= estimated_tokens(text) <= 3 * exact


@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens(first, second):
    assert estimated_tokens(first + "\n" + second) >= max(estimated_tokens(first), estimated_tokens(second)) - 1
