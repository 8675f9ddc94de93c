"""Replies of a schema are whole at any length that the shortest of them fits into."""

import json

import jsonschema
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rag_lab.evaluation.judge_output import strict_schema
from rag_lab.models.local.decoding.reply_guide import ReplyGuide
from rag_lab.models.local.decoding.schema_matcher import SchemaMatcher
from rag_lab.models.local.decoding.thinking_marks import thinking_marks
from rag_lab.models.local.decoding.thought import Thought
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.stages.answer.prompts import SCHEMA
from rag_lab.stages.query.prompts import UNDERSTANDING_SCHEMA, phrasing_schema
from tests.tiny_thinker import byte_level_tokenizer

TOKENIZER = byte_level_tokenizer()
END = TOKENIZER.eos_token_id
MARKS = thinking_marks(TOKENIZER)


class Verdict(BaseModel):
    statement: str
    reason: str
    verdict: int


class Verdicts(BaseModel):
    statements: list[Verdict]


def members(required=None, **properties):
    required = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TREE = {
    "$defs": {"node": members(["size"], child={"$ref": "#/$defs/node"}, kind=TEXT, size=WHOLE)},
    "$ref": "#/$defs/node",
}
SCHEMAS = {
    "answer": SCHEMA,
    "understanding": UNDERSTANDING_SCHEMA,
    "phrasings": phrasing_schema(3),
    "verdicts": strict_schema(Verdicts),
    "numbers": members(a=NUMBER, b={"type": "number", "exclusiveMinimum": 0}, c={"type": "integer", "minimum": 25}),
    "choices": members(a={"enum": ["unknown", "unclear", "yes", 4]}, b={"anyOf": [{"type": "null"}, members(c=TEXT)]}),
    "nested": members(
        a=members(b=members(c=TEXT, d={"type": "boolean"}), e={"type": "array", "items": members(f=TEXT)})
    ),
    "optional": members(["z"], a=TEXT, b=members(c=TEXT), z={"type": "string", "minLength": 2, "maxLength": 5}),
    "tree": TREE,
    "list": {"type": "array", "items": members(a=TEXT, b=NUMBER), "minItems": 1},
    "text": TEXT,
    "number": NUMBER,
}


def matcher(schema):
    return SchemaMatcher(schema, TOKENIZER, (END,), (MARKS.open, MARKS.close))


def smallest(schema):
    return len(matcher(schema).shortest_end())


def written(guide, random, liked=()):
    """Let a model write whose scores are random, but high for `liked` tokens."""
    while not guide.over:
        scores = torch.tensor(random.normal(0, 3, len(TOKENIZER) + 32), dtype=torch.float32)
        scores[list(liked)] += 6
        guide.restrict(scores)
        if random.random() < 0.5:
            scores += torch.tensor(random.gumbel(size=len(scores)), dtype=torch.float32)  # drawn, and not the likeliest
        guide.take(int(scores.argmax()))
    assert guide.problem == ""
    return TOKENIZER.decode([token for token in guide.reply_ids if token != END])


OPENERS = [
    token for text, token in TOKENIZER.get_vocab().items() if text in ("\\", "u", "[", "{", ",", "Ã", "ð", "-", "e")
]
LETTERS = [token for text, token in TOKENIZER.get_vocab().items() if text.isalpha() and len(text) == 1]


@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
@settings(deadline=None, max_examples=10)
def test_a_reply_is_of_its_schema_at_any_length(name, data):
    schema = SCHEMAS[name]
    least = smallest(schema)
    room = data.draw(st.integers(least, least + 40))
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    liked = data.draw(st.sampled_from([(), OPENERS, LETTERS]))
    tokens = data.draw(st.sampled_from([0, 20]))
    thought = Thought(MARKS, tokens, data.draw(st.booleans()), True) if tokens else None
    guide = ReplyGuide(room, (END,), matcher(schema), thought)
    text = written(guide, random, liked)
    jsonschema.validate(json.loads(text), schema)
    assert len(guide.reply_ids) <= room


@pytest.mark.parametrize(
    "begun",
    [
        '{"answer": "a',
        '{"answer": "a\\',
        '{"answer": "\\u',
        '{"answer": "\\u00',
        '{"answer": "Ã',
        '{"answer": "ð',
        '{"an',
        '{"answer": "", "citations": [-',
        '{"answer": "", "citations": [12, ',
        '{"answer": ""',
        '{"answer": "a {[',
        "",
    ],
)
def test_json_can_be_closed_from_anywhere(begun):
    held, vocabulary = matcher(SCHEMA), TOKENIZER.get_vocab()
    tokens = [vocabulary["Ġ" if letter == " " else letter] for letter in begun]
    for token in tokens:
        held.take(token)
    text = TOKENIZER.decode(tokens + held.shortest_end())
    jsonschema.validate(json.loads(text), SCHEMA)


def test_the_smallest_reply_is_small():
    assert TOKENIZER.decode(matcher(SCHEMA).shortest_end()) == '{"answer": "", "citations": []}'
    assert TOKENIZER.decode(matcher(TREE).shortest_end()) == '{"size": 1}'


def test_a_reply_that_was_closed_early_says_so_and_one_that_ended_in_time_does_not():
    random = np.random.default_rng(0)
    early = ReplyGuide(30, (END,), matcher(SCHEMA))
    written(early, random, LETTERS)
    assert early.truncated
    assert early.closed_early
    ended = ReplyGuide(len(TOKENIZER('{"answer": "ab", "citations": []}')["input_ids"]), (END,), matcher(SCHEMA))
    for token in TOKENIZER('{"answer": "ab", "citations": []}')["input_ids"]:
        scores = torch.zeros(len(TOKENIZER))
        scores[token] = 10.0
        ended.restrict(scores)
        assert int(scores.argmax()) == token
        ended.take(token)
    assert ended.over
    assert not ended.truncated
    assert not ended.closed_early


def test_a_length_that_no_reply_fits_into_cuts_it_off():
    guide = ReplyGuide(smallest(SCHEMA) - 1, (END,), matcher(SCHEMA))
    written(guide, np.random.default_rng(0))
    assert guide.truncated
    assert not guide.closed_early


@pytest.fixture(scope="module")
def model(tiny_thinker):
    return TransformersChat(str(tiny_thinker), device="cpu", batch_size=8)


@pytest.mark.parametrize("name", ["answer", "verdicts", "choices"])
@pytest.mark.parametrize("thinking_tokens", [0, 12])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_model_keeps_to_schema_and_length(model, name, thinking_tokens, temperature):
    schema = SCHEMAS[name]
    requests = [
        ChatRequest(
            (Message("user", "what does the press need"),),
            max_tokens=smallest(schema) + step,
            temperature=temperature,
            seed=step,
            json_schema=schema,
            thinking_tokens=thinking_tokens,
        )
        for step in (0, 1, 3, 8, 21)
    ]
    for request, reply in zip(requests, model.generate(requests), strict=True):
        assert reply.error == ""
        jsonschema.validate(json.loads(reply.text), schema)
        assert reply.tokens_out - reply.thinking_tokens <= request.max_tokens
