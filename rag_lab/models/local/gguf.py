"""GGUF files: the settings at their head, their tokenizer, how they think and sample, and copies in another type.

The packaged weights are stored as Q8_0, once, unless another type is asked for: llama.cpp has fast matrix kernels for
it on AVX2 and none for the packaged Q4_1 (320 against 150 to 190 tokens a second measured with SmolLM2-135M on two
cores). Q8_0 holds every Q4_1 value to within half a step of its own scale. More bits than the source has bring nothing
back: they only keep what it still knows.
"""

import ctypes
import logging
import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab._kit.config_file import read_shipped
from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import keep_converted
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.weights import file_digest, noted

_MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")  # of a text, before it
_ALIGNMENT = 32  # of the weights, where the file names no other
_MARKS = (2, 3, 4)  # types of tokens that are found in a text as they stand: unknown, control, the user's own
_DIGITS_AT_ONCE = {"llama-bpe": "{1,3}", "qwen2": ""}
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FAMILIES = ("smollm", "gpt-2", *_DIGITS_AT_ONCE)
_THINKING_MARKS = ("<think", "enable_thinking", "reasoning_content", "<|channel|>")
_CARRIED = {"temperature": "temp", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p"}
_QWEN3 = ({"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0}, {"top_p": 0.8, "top_k": 20, "min_p": 0.0})
_DEEPSEEK_R1 = ({"temperature": 0.6, "top_p": 0.95}, {"top_p": 0.95})
_DOCUMENTED = {"qwen3": _QWEN3, "deepseek-r1": _DEEPSEEK_R1}  # with thinking, without
_FALLBACK_TEMPERATURE = 0.6  # of thoughts that no card says anything of


def gguf_metadata(path: Path, *, with_lists: bool = True) -> dict[str, Any] | None:
    """Return the keys and values (None for lists) at the head of a GGUF file; None where it is none, or not whole."""
    try:
        if not with_lists:
            return dict(_head(path)[0])
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(content).settings(with_lists=True)
    except (OSError, ValueError, KeyError, struct.error):
        return None


def gguf_problem(path: Path) -> str:
    """Return why a file cannot be loaded, as a sentence goes on after its name, or ''; only its head is read."""
    there = path.stat().st_size
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            return "is no GGUF file"
    try:
        whole = _head(path)[1]
    except KeyError:  # a kind of value that nobody here knows
        return ""
    except (ValueError, struct.error):
        return f"is cut short or damaged within its head ({there:,} bytes are there)"
    return f"is cut short ({there:,} of {whole:,} bytes are there)" if there < whole else ""


def _head(path: Path) -> tuple[Mapping[str, Any], int]:
    """Return the settings without lists, and the size of the whole file, 0 where its weights are of a new type."""
    settings, size = noted(path, "heads", _read_head, list)
    return settings, size


def _read_head(path: Path) -> tuple[Mapping[str, Any], int]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        reader = _Reader(content)
        settings = reader.settings(with_lists=False)
        try:
            return settings, reader.size(settings)
        except KeyError:  # a type of weights that is newer than the installed gguf
            return settings, 0


@dataclass
class _Reader:
    content: mmap.mmap
    place: int = 0
    n_tensors: int = 0

    def number(self, form: str) -> tuple[Any, ...]:
        start, self.place = self.place, self.place + struct.calcsize(f"<{form}")
        return struct.unpack_from(f"<{form}", self.content, start)

    def settings(self, with_lists: bool) -> dict[str, Any]:
        """Return what stands at the head, and stay behind it."""
        if self.content[:4] != _MAGIC:
            raise ValueError("no GGUF file")
        self.place = len(_MAGIC)
        _, self.n_tensors, n_pairs = self.number("IQQ")
        found: dict[str, Any] = {}
        for _ in range(n_pairs):
            key, (kind,) = self.text(), self.number("I")
            found[key] = self.value(kind, with_lists)
        return found

    def size(self, settings: Mapping[str, Any]) -> int:
        """Return the size in bytes of the whole file, by the weights that are announced behind its settings."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        end = 0  # of the weights, counted from where all of them begin
        for _ in range(self.n_tensors):
            self.text()
            (n_dims,) = self.number("I")
            n_weights = math.prod(self.number(f"{n_dims}Q"))
            kind, offset = self.number("IQ")
            if kind not in set(GGMLQuantizationType):
                raise KeyError(kind)
            block, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
            end = max(end, int(offset + n_weights // block * n_bytes))
        alignment = int(settings.get("general.alignment", _ALIGNMENT))
        return -(-self.place // alignment) * alignment + end

    def text(self) -> str:
        start, end = self.pass_texts(1)[0]
        return self.content[start:end].decode(errors="replace")

    def pass_texts(self, n: int) -> list[tuple[int, int]]:
        """Return where each of the next texts begins and ends; there are a hundred thousand in a file."""
        place, spans, size = self.place, [], len(self.content)
        for _ in range(n):
            start = place + _LENGTH.size
            place = start + _LENGTH.unpack_from(self.content, place)[0]
            if place > size:
                raise ValueError(place)
            spans.append((start, place))
        self.place = place
        return spans

    def value(self, kind: int, with_lists: bool) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])[0]
        inner, length = self.number("IQ")
        if length > len(self.content):
            raise ValueError(length)
        if inner == _STRING:
            spans = self.pass_texts(length)
            return [self.content[start:end].decode(errors="replace") for start, end in spans] if with_lists else None
        numbers = self.number(f"{length}{_NUMBERS[inner]}")
        return list(numbers) if with_lists else None


@cache
def gguf_tokenizer(path: Path) -> Any:
    """Return the tokenizer of a GGUF file; None where it is of another family than `FAMILIES`, or not whole."""
    found = gguf_metadata(path) or {}
    family = found.get("tokenizer.ggml.pre")
    if found.get("tokenizer.ggml.model") != "gpt2" or family not in FAMILIES:
        return None
    try:
        from tokenizers import AddedToken, Tokenizer, models

        tokens, kinds = found["tokenizer.ggml.tokens"], found["tokenizer.ggml.token_type"]
        bpe = models.BPE(
            vocab={token: number for number, token in enumerate(tokens)},
            merges=[tuple(merge.split(" ", 1)) for merge in found["tokenizer.ggml.merges"]],
            ignore_merges=family == "llama-bpe",
        )
        tokenizer = Tokenizer(bpe)
        tokenizer.pre_tokenizer = _words(family)
        marks = [token for token, kind in zip(tokens, kinds, strict=True) if kind in _MARKS]
        tokenizer.add_special_tokens([AddedToken(mark, normalized=False, special=True) for mark in marks])
        return tokenizer
    except Exception:  # of what a file may hold, and the library of tokenizers raises nothing more special
        return None


def _words(family: str) -> Any:
    """Return how a text is cut before its pieces are merged."""
    from tokenizers import Regex, pre_tokenizers

    if family in _DIGITS_AT_ONCE:
        pattern = Regex(_WORDS % _DIGITS_AT_ONCE[family])
        split = pre_tokenizers.Split(pattern, "isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if family == "gpt-2":
        return words
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), words])


@dataclass(frozen=True)
class GgufCard:
    """A file's metadata, as far as replies depend on it."""

    thinks: bool
    thinking: Mapping[str, float]
    plain: Mapping[str, float]

    def sampling(self, request: ChatRequest) -> dict[str, float]:
        """Return the sampling of a request: what it says, else what is named here; the rest is llama.cpp's own.

        A temperature of 0 is greedy, but for thoughts, which then have the card's temperature.
        """
        thinking = self.thinks and request.thinking
        named = self.thinking if thinking else self.plain
        temperature = request.temperature or (named.get("temperature", _FALLBACK_TEMPERATURE) if thinking else 0.0)
        return {**named, **request.sampling, "temperature": temperature} if temperature else {"temperature": 0.0}


def gguf_card(metadata: Mapping[str, Any]) -> GgufCard:
    """Return the card in a file's metadata (`gguf_metadata`); an empty mapping is a file that tells nothing."""
    template = str(metadata.get("tokenizer.chat_template", ""))
    carried = {
        name: metadata[f"general.sampling.{key}"]
        for name, key in _CARRIED.items()
        if f"general.sampling.{key}" in metadata
    }
    names = " ".join(str(metadata.get(f"general.{key}", "")) for key in ("architecture", "basename", "name")).lower()
    family = next((name for name in _DOCUMENTED if name in names.replace(" ", "-")), "")
    thinking, plain = _DOCUMENTED.get(family, ({}, {}))
    thinks = any(mark in template for mark in _THINKING_MARKS)
    return GgufCard(thinks, {**thinking, **carried}, {**carried, **plain} if thinks else {})


GIVEN = "given"
KV_TYPES = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")  # of which llama.cpp can keep keys and values
_LOG = logging.getLogger(__name__)
_OFTEN_READ = ("token_embd.weight", "output.weight")  # llama.cpp keeps these at 6 to 8 bits: every token needs them


@dataclass(frozen=True, slots=True)
class StoredType:
    """One type of a GGUF file's numbers (ggml.h, `ggml_type`; llama.h, `llama_ftype`)."""

    number: int  # in a file
    block: int  # values that are stored together: rows are multiples of it
    block_bytes: int
    file_type: int | None = None  # of a file that mostly holds it; None where llama.cpp had better look itself
    instead: str = ""  # what llama.cpp stores in its place where rows are no multiples

    @property
    def bits(self) -> float:
        """Bits a value takes, the scale of its block included."""
        return 8 * self.block_bytes / self.block


_STORED = read_shipped(Path(__file__).with_name("gguf_types.yaml"))
TYPES = {name: StoredType(*values) for name, values in _STORED.items()}
WEIGHTS = (GIVEN, *TYPES)


def quantized(values: npt.NDArray[np.float32], kind: StoredType) -> npt.NDArray[np.uint8]:
    """Return `values` of shape (..., row) as bytes of shape (..., row / block * block_bytes)."""
    if (library := _llamacpp()) is None:
        from gguf import GGMLQuantizationType, quants

        return np.asarray(quants.quantize(values, GGMLQuantizationType(kind.number)))
    row = values.shape[-1]
    n_rows = values.size // row
    source = np.ascontiguousarray(values, np.float32)
    target = np.empty((*values.shape[:-1], row // kind.block * kind.block_bytes), np.uint8)
    quantize = library.ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)
    written = quantize(kind.number, source.ctypes.data, target.ctypes.data, 0, n_rows, row, None)
    if written != target.nbytes:
        raise ValueError(f"llama.cpp wrote {written} bytes in place of {target.nbytes}")
    return target


@cache
def _llamacpp() -> Any:
    """Return llama.cpp as xllamacpp ships it, whose quantizer is an open function of C (ggml.h), four times as fast as
    gguf's and with the same bytes; None where a build shows none.
    """
    try:
        from xllamacpp import xllamacpp

        library = ctypes.CDLL(xllamacpp.__file__)
        library.ggml_quantize_chunk  # noqa: B018 - looked up now
    except (ImportError, OSError, AttributeError):
        return None
    return library


def stored_as(source: Path, kind: str) -> Path:
    """Return the copy of a GGUF file with weights of this type (of `TYPES`), made on first use below the home folder.

    As llama.cpp's quantizer does it: vectors stay, embeddings keep at least eight bits, and where rows are no multiples
    of a type's block, another type takes its place (`StoredType.instead`). Safe between processes.
    """
    return keep_converted(
        f"{file_digest(source).rpartition(':')[2][:16]}-{kind}.gguf", lambda partial: _convert(source, partial, kind)
    )


def gguf_reader(path: Path) -> Any:
    """Return the library's reader of a GGUF file, of plain arrays: slices of a mapped file take three times as long."""
    from gguf.gguf_reader import GGUFReader

    data = property(lambda reader: reader.plain, lambda reader, mapped: setattr(reader, "plain", np.asarray(mapped)))
    return type("PlainReader", (GGUFReader,), {"data": data})(path)


def stored_bytes(tensor: Any, kind: str) -> int:
    """Return how many bytes a tensor of a GGUF file takes once it is stored as `kind`, or as it is (`given`)."""
    from gguf import GGMLQuantizationType

    is_vector = tensor.tensor_type == GGMLQuantizationType.F32 and len(tensor.shape) == 1
    if kind == GIVEN or is_vector:
        return int(tensor.n_bytes)
    row = int(tensor.shape[0])  # of a GGUF file's shapes the first is the row
    return int(tensor.n_elements * TYPES[_type_for(tensor.name, row, kind)].bits / 8)


def _convert(source: Path, target: Path, kind: str) -> None:
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter, quants

    _LOG.info("Storing %s as %s, once", source.name, kind.upper())
    try:
        reader = gguf_reader(source)
        writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
        file_type = TYPES[kind].file_type
        for key, stored in reader.fields.items():
            if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
                continue
            inner = stored.types[-1] if stored.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(key, stored.contents(), stored.types[0], sub_type=inner)
        if file_type is not None:
            writer.add_file_type(file_type)
        for tensor in reader.tensors:
            if tensor.tensor_type == GGMLQuantizationType.F32 and len(tensor.shape) == 1:  # norms and biases
                writer.add_tensor(tensor.name, tensor.data)
                continue
            values = quants.dequantize(tensor.data, tensor.tensor_type)
            if kind == "f16":
                writer.add_tensor(tensor.name, values.astype("float16"))
                continue
            into = TYPES[_type_for(tensor.name, values.shape[-1], kind)]
            rows = quantized(values, into).view("int8")
            writer.add_tensor(tensor.name, rows, raw_shape=values.shape, raw_dtype=into.number)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{source.name} is not a GGUF file that can be stored as {kind.upper()}: {error}; give its weights in one "
            "of the usual types."
        ) from error
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _type_for(tensor: str, row: int, kind: str) -> str:
    """Return the type that a tensor is stored in where the file is to be of `kind`, its rows being `row` long."""
    if tensor in _OFTEN_READ and TYPES[kind].bits < TYPES["q8_0"].bits:
        kind = "q8_0"
    while row % TYPES[kind].block:
        if not TYPES[kind].instead:
            raise ValueError(f"rows of {row} values cannot be stored as {kind.upper()}")
        kind = TYPES[kind].instead
    return kind
