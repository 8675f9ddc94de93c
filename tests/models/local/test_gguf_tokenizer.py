"""The tokenizer alone counts what llama.cpp counts, in every script, without llama.cpp."""

import json
from pathlib import Path

import pytest
from tiny_models import write_tiny_gguf

from rag_lab.models.local import llamacpp
from rag_lab.models.local.gguf_file import FAMILIES, gguf_metadata, gguf_tokenizer
from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.local.llamacpp_server import LlamaCppServer, ServerSettings
from rag_lab.models.weights import packaged

pytestmark = pytest.mark.slow

TEXTS = [
    "",
    "The relief valve of press P-1 opens at 290 bar; the oil is changed every 2,000 hours.",
    "Die Hydraulikpresse läuft mit 140 bar – größer als Straßenbahnen und Übergänge.",
    "Предохранительный клапан открывается при 290 бар, масло меняют каждые 2000 часов.",
    "安全阀在290巴时打开，油每2000小时更换一次。百二十三",
    "La válvula se abre a 290 bares, ¿verdad? ¡Sí! ½ ² Ⅳ ④",
    "صمام الأمان يفتح عند ٢٩٠ بار. שסתום הבטיחות נפתח",
    "वाल्व २९० बार पर खुलता है ไทย 日本語カナ 한국어",
    "１２３ ٣٤٥ 1234567 12.5 3,000 $5.00 100%",
    "🙂👩‍👩‍👧‍👦 e\u0301 ﬁ 𝔘𝔫𝔦 𐍈 İ ı ß ſ",
    "a  b   c\n\n\n d\t\te \r\n\r\n \u00a0\u200b\u3000 end ",
    "don't I'LL we've YOU'RE 's 'S",
    "x = {'a': [1, 2]}; for (i = 0; i < 10; i++) { snake_case.__x__ }  # https://a.b/c?d=e#f",
    "<|im_start|>user\nHello<|im_end|> <|endoftext|><not_a_token|>",
    "\x00\x07",
    "[1] press.md, p. 3\nThe filter is changed monthly.\n\n[2] log.txt\nNothing.",
]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_counts_as_llama_cpp_does(family, tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", pre=family)
    server, tokenizer = LlamaCppServer(path, ServerSettings(512, 1)), gguf_tokenizer(path)
    counted = {text: len(tokenizer.encode(text, add_special_tokens=False)) for text in TEXTS}
    assert counted == {text: server.count_tokens(text) for text in TEXTS}


def test_the_packaged_model_counts_without_being_loaded(monkeypatch):
    def load(*given):
        raise AssertionError("the model was loaded to count")

    monkeypatch.setattr(llamacpp.llamacpp_server, "LlamaCppServer", load)
    assert [LlamaCppChat("smollm2").count_tokens(text) for text in ("", "Hello world")] == [0, 2]


@pytest.mark.parametrize("changes", [{"pre": "deepseek-llm"}, {"model": "llama"}])
def test_another_family_is_left_to_llama_cpp(changes, tmp_path):
    assert gguf_tokenizer(write_tiny_gguf(tmp_path / "tiny.gguf", **changes)) is None


@pytest.mark.parametrize("changes", [{"merges": ["no such", "pair"]}, {"token_type": [1, 1]}])
def test_a_vocabulary_that_does_not_fit_together_is_left_to_llama_cpp(changes, tmp_path):
    assert gguf_tokenizer(write_tiny_gguf(tmp_path / "tiny.gguf", **changes)) is None


def test_llama_cpp_counts_for_a_model_of_another_family(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", pre="deepseek-llm")
    assert LlamaCppChat(str(path), context=512, threads=1).count_tokens("Hello world") == 2


@pytest.mark.parametrize("kept", [0, 3, 20, 200, 100_000])
def test_a_file_that_is_none_or_not_whole_has_no_tokenizer(kept, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    with packaged("smollm2").open("rb") as whole:
        damaged.write_bytes(whole.read(kept))
    assert gguf_metadata(damaged) is None
    assert gguf_tokenizer(damaged) is None


def test_the_metadata_are_those_that_the_gguf_package_reads(tmp_path):
    from gguf import GGUFReader

    path = write_tiny_gguf(tmp_path / "tiny.gguf", tokens=["a", "é", "Ġb"], token_type=[3, 1, 1], merges=["a b"])
    fields = GGUFReader(path).fields
    expected = {key: field.contents() for key, field in fields.items() if not key.startswith("GGUF.")}
    assert json.dumps(gguf_metadata(path)) == json.dumps(expected)
    assert Path(path).stat().st_size < 100_000
