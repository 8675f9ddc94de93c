"""A server that cuts prompts is found out by the tokens that it reports, and one that reads all is never accused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.models.local.gguf_file import gguf_tokenizer
from rag_lab.models.local.sentence_transformers import read_length
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.remote.replies import counted
from rag_lab.models.truncation import fewest_tokens, truncated_in_prompt
from rag_lab.models.weights import find, packaged

TEXTS = [
    "The relief valve of press P-1 opens at 290 bar; don't touch it, e.g. with 3.5 mm gloves (see 4.2).",
    "Donaudampfschifffahrtsgesellschaftskapitän und Rinderkennzeichnungsfleischetikettierungsüberwachung",
    "| a | b |\n| --- | --- |\n| 1,200 | https://example.org/a?b=c&d=e |",
    "阀门在二百九十巴时打开。油每两千小时更换一次。 圧力弁は二百九十バールで開きます。",
    "ประตูนิรภัยเปิดที่ความดันสองร้อยเก้าสิบบาร์",
    "x" * 500 + " " + "=" * 80,
    "",
]


@pytest.fixture(scope="module")
def counters():
    smollm2 = gguf_tokenizer(packaged("smollm2"))
    minilm = read_length(find("minilm"))
    return [lambda text: len(smollm2.encode(text, add_special_tokens=False).ids),
            lambda text: minilm.of_texts([text], "document")[0]]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_no_tokenizer_here_makes_fewer_tokens_of_a_text(counters, text):
    assert fewest_tokens(text) <= counters[0](text)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_nor_of_any_other(counters, text):
    assert fewest_tokens(text) <= counters[0](text)


def prompt(n):
    return ChatRequest((Message("system", "Answer from the passages."), Message("user", "press " * n)))


def test_what_a_server_cannot_have_read_is_counted():
    assert truncated_in_prompt(prompt(6000), 4000) == 6000 + 4 - 4000
    assert truncated_in_prompt(prompt(3000), 3300) == 0


def test_a_server_that_reports_a_whole_window_has_cut_what_may_have_been_more():
    assert truncated_in_prompt(prompt(3200), 4096) == 1
    assert truncated_in_prompt(prompt(3200), 4095) == 0
    assert truncated_in_prompt(prompt(900), 4096) == 0  # as an image may take


@given(st.integers(1, 3000))
def test_who_reads_all_is_not_accused(counters, n):
    request = ChatRequest((Message("user", TEXTS[0] * n),)) if n < 40 else prompt(n)
    read = sum(counters[0](message.content) for message in request.messages)
    assert truncated_in_prompt(request, read + (read % 1024 == 0)) == 0


def test_counts_of_a_server_carry_what_it_did_not_read_and_estimates_do_not():
    told, guessed = counted(prompt(6000), ChatReply("ok", tokens_in=4096, tokens_out=1))
    assert (told.truncated_tokens, guessed) == (6004 - 4096, "")
    untold, guessed = counted(prompt(6000), ChatReply("ok"))
    assert untold.truncated_tokens == 0 and guessed
    known, _ = counted(prompt(6000), ChatReply("ok", tokens_in=4096, tokens_out=1, truncated_tokens=77))
    assert known.truncated_tokens == 77
