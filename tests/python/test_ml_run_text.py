"""ml_run --tokenize and --detokenize, on a tokenizer made here."""

import mlt
import numpy as np
import pytest

BYTES = [mlt.Token(bytes([byte])) for byte in range(256)]
AB, BOS, END = 256, 257, 258


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Bytes, "ab", <s> before every text, and <end>; byte-level."""
    tokens = [*BYTES, mlt.Token(b"ab"), mlt.Token(b"<s>", mlt.ATTR_ADDED), mlt.Token(b"<end>", mlt.ATTR_ADDED)]
    merges = np.array([[ord("a"), ord("b"), AB]], dtype="<u4")
    path = tmp_path_factory.mktemp("tokenizer") / "tiny.mlt"
    mlt.write_tokenizer(path, mlt.Tokenizer(2, tokens, merges, bos=BOS, eos=END, flags=mlt.FLAG_BOS))
    return path


def test_ids_are_one_line(run, tokenizer, tmp_path):
    (tmp_path / "text").write_bytes(b"abc\0d")
    answer = run("--tokenizer", tokenizer, "--tokenize", tmp_path / "text")
    assert answer.ids == [BOS, AB, ord("c"), 0, ord("d")]
    assert answer.err == ""


def test_added_tokens_are_text_unless_special(run, tokenizer):
    plain = run("--tokenizer", tokenizer, "--tokenize", "-", stdin=b"b<end>")
    assert plain.ids == [BOS, *b"b<end>"]
    special = run("--tokenizer", tokenizer, "--tokenize", "-", "--special", stdin=b"b<end>")
    assert special.ids == [BOS, ord("b"), END]


def test_empty_text_is_bos_alone(run, tokenizer):
    assert run("--tokenizer", tokenizer, "--tokenize", "-").ids == [BOS]


def test_there_and_back(run, tokenizer, tmp_path):
    text = "ab \u00e9\U0001f999\r\n<end>ab\n"
    encoded = run("--tokenizer", tokenizer, "--tokenize", "-", stdin=text.encode())
    (tmp_path / "ids").write_text(encoded.out)
    assert run("--tokenizer", tokenizer, "--detokenize", tmp_path / "ids").out == text
    assert run("--tokenizer", tokenizer, "--detokenize", tmp_path / "ids", "--special").out == "<s>" + text


def test_unfinished_character(run, tokenizer):
    assert run("--tokenizer", tokenizer, "--detokenize", f"{AB},240,159").out == "ab\ufffd"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--detokenize", "1,259"], "ML_E_ARG"),
        (["--detokenize", "-1"], "ML_E_ARG"),
        (["--tokenize", "no-such"], "ML_E_IO"),
    ],
)
def test_mistakes(run, tokenizer, arguments, status):
    answer = run("--tokenizer", tokenizer, *arguments)
    assert answer.status == status
    assert answer.out == ""


def test_wrong_usage(run, tokenizer):
    assert run("--tokenize", tokenizer).code == 2
    assert "--tokenizer" in run("--tokenize", tokenizer).err
    assert run("--tokenizer", tokenizer, "--tokenize", "-", "--detokenize", "1").code == 2
    assert "no meaning" in run("--special", "--info", "-m", "x").err


def test_check(run, tokenizer, tmp_path):
    assert run("--check", tokenizer).out == f"{tokenizer}: tokenizer, good\n"
    (tmp_path / "short.mlt").write_bytes(tokenizer.read_bytes()[:-1])
    assert run("--check", tmp_path / "short.mlt").status == "ML_E_FORMAT"
