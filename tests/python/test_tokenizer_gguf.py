"""GGUF metadata to .mlt: the same bytes as from tokenizer.json, and what is refused by name."""

import dataclasses
import json
import re

import convert_tokenizer
import fetch_models
import gguf
import mlt
import numpy as np
import pytest
import tokenizer_sources
from tokenizer_documents import byte_level, sentencepiece
from tokenizer_gguf import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    TokenizerFields,
    convert_fields,
    merges_from_scores,
)
from tokenizer_json import SideFacts, convert_json
from tokenizer_vocab import TokenizerError

NOTHING_ELSE = SideFacts(no_eos=True)


def byte_level_fields(**changes):
    """The twin of tokenizer_documents.byte_level."""
    document = byte_level()
    tokens = [*document["model"]["vocab"], "<s>"]
    fields = TokenizerFields(
        model="gpt2",
        pre="llama-bpe",
        architecture="llama",
        tokens=tokens,
        types=[NORMAL] * 259 + [CONTROL],
        scores=None,
        merges=[" ".join(rule) for rule in document["model"]["merges"]],
        bos=259,
        eos=None,
        add_bos=None,
        add_space_prefix=True,
    )
    return dataclasses.replace(fields, **changes)


def sentencepiece_fields(**changes):
    """The twin of tokenizer_documents.sentencepiece."""
    tokens = list(sentencepiece()["model"]["vocab"])
    fields = TokenizerFields(
        model="llama",
        pre="default",
        architecture="llama",
        tokens=tokens,
        types=[UNKNOWN, CONTROL] + [BYTE] * 256 + [NORMAL] * 5,
        scores=[0.0] * 258 + [-10.0, -11.0, -12.0, -1.0, -2.0],
        merges=None,
        bos=1,
        eos=None,
        add_bos=None,
        add_space_prefix=True,
    )
    return dataclasses.replace(fields, **changes)


# ---------------------------------------------------------------- the same as from tokenizer.json


def test_byte_level_twin():
    document = byte_level()
    document["model"]["ignore_merges"] = True
    twin = convert_json(document, SideFacts(bos="<s>", no_eos=True, add_bos=True)).tokenizer
    assert convert_fields(byte_level_fields(), NOTHING_ELSE).tokenizer.pack() == twin.pack()


def test_sentencepiece_twin():
    twin = convert_json(sentencepiece(), SideFacts(bos="<s>", no_eos=True, add_bos=True)).tokenizer
    assert convert_fields(sentencepiece_fields(), NOTHING_ELSE).tokenizer.pack() == twin.pack()


PRE = [
    ("llama-bpe", mlt.FLAG_IGNORE_MERGES | mlt.FLAG_BOS),
    ("qwen2", mlt.FLAG_NFC | mlt.FLAG_ONE_DIGIT),
    ("qwen35", mlt.FLAG_NFC | mlt.FLAG_ONE_DIGIT | mlt.FLAG_MARKS),
    ("gpt-2", mlt.FLAG_GPT2),
    ("smollm", mlt.FLAG_GPT2 | mlt.FLAG_SPLIT_DIGITS),
]


@pytest.mark.parametrize(("pre", "flags"), PRE)
def test_pre_tokenizer_names(pre, flags):
    assert convert_fields(byte_level_fields(pre=pre), NOTHING_ELSE).tokenizer.flags == flags


@pytest.mark.parametrize(("add_bos", "wish", "flag"), [(False, None, 0), (True, None, 1), (True, False, 0)])
def test_add_bos(add_bos, wish, flag):
    side = SideFacts(add_bos=wish)
    assert convert_fields(byte_level_fields(pre="qwen2", add_bos=add_bos), side).tokenizer.flags & 1 == flag


def test_no_space_prefix():
    tokenizer = convert_fields(sentencepiece_fields(add_space_prefix=False), NOTHING_ELSE).tokenizer
    assert tokenizer.flags == mlt.FLAG_NO_PREFIX | mlt.FLAG_BOS


def test_unused_ids_are_left_out_at_the_end_and_empty_elsewhere():
    fields = byte_level_fields(eos=259)
    fields.tokens = [*fields.tokens[:257], "[PAD257]", "Ġa", "<s>", "[PAD260]", "[PAD261]"]
    fields.types = [NORMAL] * 257 + [UNUSED, NORMAL, CONTROL, UNUSED, UNUSED]
    fields.merges = ["a b", "Ġ a"]
    tokenizer = convert_fields(fields, SideFacts()).tokenizer
    assert len(tokenizer.tokens) == 260
    assert tokenizer.tokens[257] == mlt.Token(b"")
    assert tokenizer.eos == 259


def test_runs_of_spaces_are_spelled_with_marks():
    fields = sentencepiece_fields()
    fields.tokens[-1], fields.types[-1] = "  ", USER_DEFINED
    tokenizer = convert_fields(fields, NOTHING_ELSE).tokenizer
    assert tokenizer.tokens[-1] == mlt.Token("▁▁".encode(), mlt.ATTR_ADDED)


def test_merges_from_scores():
    """Every split of a piece, best score first; among equals by id or longer parts first."""
    vocab = {piece: id_ for id_, piece in enumerate(["a", "b", "c", "ab", "bc", "abc", "<ab>"])}
    scores = dict(zip(vocab, [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0], strict=True))
    rules = merges_from_scores(vocab, scores, {"<ab>"}, longer_first=False)
    assert rules == [("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]
    rules = merges_from_scores(vocab, scores, {"<ab>"}, longer_first=True)
    assert rules == [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")]
    assert merges_from_scores(vocab, scores, {"<ab>", "ab"}, longer_first=True) == [("b", "c"), ("a", "bc")]


# ---------------------------------------------------------------- refusals

REFUSED = [
    (byte_level_fields, {"model": "bert"}, "tokenizer.ggml.model 'bert'"),
    (byte_level_fields, {"model": "t5"}, "tokenizer.ggml.model 't5'"),
    (byte_level_fields, {"pre": "tekken"}, "tokenizer.ggml.pre 'tekken' is not known; known are llama-bpe"),
    (byte_level_fields, {"pre": None}, "tokenizer.ggml.pre None"),
    (byte_level_fields, {"merges": None}, "no tokenizer.ggml.merges"),
    (byte_level_fields, {"merges": []}, "empty although"),
    (byte_level_fields, {"merges": ["a b c"]}, "rule 0 is 'a b c'"),
    (byte_level_fields, {"merges": ["ab"]}, "rule 0 is 'ab'"),
    (byte_level_fields, {"types": [NORMAL]}, "token_type has 1 entries for 260 tokens"),
    (byte_level_fields, {"bos": 260}, "bos_token_id 260 is not below 260"),
    (byte_level_fields, {"tokens": ["a"] * 260}, "'a' is both 0 and 1"),
    (sentencepiece_fields, {"scores": None}, "no tokenizer.ggml.scores"),
    (sentencepiece_fields, {"scores": [0.0]}, "scores has 1 entries for 263 tokens"),
    (sentencepiece_fields, {"types": [NORMAL] * 263}, "0 of 256 byte tokens"),
]


@pytest.mark.parametrize(("fields", "changes", "words"), REFUSED)
def test_refused_by_name(fields, changes, words):
    with pytest.raises(TokenizerError, match=words) as error:
        convert_fields(fields(**changes), NOTHING_ELSE)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------- files


def write_gguf(path, fields, **extra):
    writer = gguf.GGUFWriter(path, fields.architecture)
    writer.add_tokenizer_model(fields.model)
    writer.add_tokenizer_pre(fields.pre)
    writer.add_token_list(fields.tokens)
    writer.add_token_types(fields.types)
    if fields.scores:
        writer.add_token_scores(fields.scores)
    if fields.merges:
        writer.add_token_merges(fields.merges)
    writer.add_bos_token_id(fields.bos)
    for key, (add, value) in extra.items():
        getattr(writer, add)(f"tokenizer.ggml.{key}", value)
    writer.add_tensor("output_norm.weight", np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("fields", [byte_level_fields, sentencepiece_fields])
def test_file(tmp_path, fields):
    write_gguf(tmp_path / "model.gguf", fields())
    assert convert_tokenizer.main([str(tmp_path / "model.gguf"), "-o", str(tmp_path / "out.mlt")]) == 0
    assert (tmp_path / "out.mlt").read_bytes() == convert_fields(fields(), SideFacts()).tokenizer.pack()


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"add_eos_token": ("add_bool", True)}, "add_eos_token cannot be expressed"),
        ({"remove_extra_whitespaces": ("add_bool", True)}, "remove_extra_whitespaces cannot be expressed"),
        ({"precompiled_charsmap": ("add_array", [1, 2])}, "precompiled_charsmap cannot be expressed"),
        ({"eos_token_id": ("add_string", "2")}, "eos_token_id is of type string"),
        ({"add_bos_token": ("add_uint32", 1)}, "add_bos_token is of type u32"),
    ],
)
def test_file_with_a_bad_field(tmp_path, capsys, extra, words):
    write_gguf(tmp_path / "model.gguf", byte_level_fields(), **extra)
    assert convert_tokenizer.main([str(tmp_path / "model.gguf"), "-o", str(tmp_path / "out.mlt")]) == 1
    printed = capsys.readouterr().err
    assert words in printed and printed.count("\n") == 1
    assert not (tmp_path / "out.mlt").exists()


def test_not_a_gguf_file(tmp_path, capsys):
    (tmp_path / "model.gguf").write_bytes(b"GGUX" + bytes(100))
    assert convert_tokenizer.main([str(tmp_path / "model.gguf"), "-o", str(tmp_path / "out.mlt")]) == 1
    assert "not a GGUF file" in capsys.readouterr().err


# ---------------------------------------------------------------- published files


def fetched(name):
    if name not in tokenizer_sources.fetched():
        pytest.skip(f"{name} is not fetched (tools/tokenizer_sources.py fetch {name})")
    return tokenizer_sources.fetched()[name]


def gguf_of(name):
    path = fetch_models.MODELS / f"{name}.gguf"
    if not path.exists():
        pytest.skip(f"{name} is not fetched (make models)")
    return path


def test_smollm2_from_both_files():
    from_gguf = convert_tokenizer.convert_file(gguf_of("smollm2-135m")).tokenizer
    assert from_gguf.pack() == (fetched("smollm2") / "model.mlt").read_bytes()


@pytest.mark.slow
def test_gemma_merges_from_scores():
    """The GGUF file of Gemma 3 270M lists no merges; Gemma 3's tokenizer.json does."""
    from_gguf = convert_tokenizer.convert_file(gguf_of("gemma3-270m")).tokenizer
    from_json = mlt.read_tokenizer(fetched("gemma3") / "model.mlt")
    assert np.array_equal(from_gguf.merges, from_json.merges)
    assert from_gguf.tokens == from_json.tokens[: len(from_gguf.tokens)]
    assert from_gguf.flags == from_json.flags


def test_llama2_merges_from_scores():
    """Llama 2's scores count down by one from the first merged piece; runs of ▁ come last."""
    document = json.loads((fetched("llama2") / "tokenizer.json").read_text())
    vocab = document["model"]["vocab"]
    runs = {piece for piece in vocab if re.fullmatch("▁▁+", piece)}
    scores = {piece: -1e9 if piece in runs else 259.0 - id_ for piece, id_ in vocab.items()}
    whole = {piece for piece, id_ in vocab.items() if id_ < 259}
    rules = merges_from_scores(vocab, scores, whole, longer_first=False)
    assert rules == [tuple(rule) for rule in document["model"]["merges"]]


def test_pinned_hashes_are_sha256():
    for source in tokenizer_sources.SOURCES:
        for package in source.packages:
            assert re.fullmatch(r"[0-9a-f]{64}", package.sha256), package.name
