"""ml_run with text: --tokenize, --detokenize, prompts and packages, on a tokenizer made here."""

from dataclasses import replace

import mlt
import numpy as np
import pytest
from mlb import write_model
from tiny import make_tiny
from tinyloop import random_weights, write_weights
from tinyloop_cli import TINY

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


# ---------------------------------------------------------------- text to a model and back


@pytest.fixture(scope="module")
def package(tokenizer, tmp_path_factory):
    """A folder with a small model of the tokenizer's vocabulary."""
    folder = tmp_path_factory.mktemp("package")
    header, layer_flags, provide = make_tiny("llama", 5)
    write_model(folder / "model.mlb", replace(header, vocab=len(BYTES) + 3), layer_flags, provide)
    (folder / "tokenizer.mlt").write_bytes(tokenizer.read_bytes())
    return folder


def test_a_prompt_goes_on_as_its_ids_do(run, package, tokenizer):
    text = "abba \u00e9"
    ids = run("--tokenizer", tokenizer, "--tokenize", "-", stdin=text.encode()).ids
    expected = run("-m", package, "--ids", ",".join(map(str, ids)), "-n", 30, "--stop-ids", str(END)).ids
    words = run("--tokenizer", tokenizer, "--detokenize", ",".join(map(str, expected))).out if expected else ""
    for arguments in (["-p", text], ["--prompt-file", "-"]):
        answer = run("-m", package, *arguments, "-n", 30, stdin=text.encode())
        assert answer.code == 0, answer.err
        assert answer.out == words + "\n"


def test_tokenizer_of_its_own_goes_before_the_packages(run, package, tokenizer, tmp_path):
    expected = run("-m", package, "--prompt", "ab", "-n", 5).out
    assert run("-m", package / "model.mlb", "--tokenizer", tokenizer, "--prompt", "ab", "-n", 5).out == expected
    (tmp_path / "broken.mlt").write_bytes(b"MLT1")
    assert run("-m", package, "--tokenizer", tmp_path / "broken.mlt", "--prompt", "ab").status == "ML_E_FORMAT"


def test_package_gives_model_and_tokenizer(run, package):
    assert run("-m", package, "--tokenize", "-", stdin=b"abc").ids == [BOS, AB, ord("c")]
    assert run("-m", package, "--info", "--json").json["vocab"] == len(BYTES) + 3


def test_package_may_hold_a_tinyloop_model(run, tokenizer, tmp_path):
    header = replace(TINY, vocab_size=len(BYTES) + 3)
    write_weights(tmp_path / "model.tinyloop", header, random_weights(header))
    (tmp_path / "tokenizer.mlt").write_bytes(tokenizer.read_bytes())
    text = run("-m", tmp_path, "--prompt", "ab", "-n", 5)
    assert text.code == 0, text.err
    assert run("-m", tmp_path / "model.tinyloop", "--tokenizer", tokenizer, "--prompt", "ab", "-n", 5).out == text.out


def test_bos_is_not_doubled(run, package):
    assert run("-m", package, "--tokenize", "-", "--special", stdin=b"<s>ab").ids == [BOS, AB]
    assert run("-m", package, "--tokenize", "-", "--special", stdin=b"<s><s>ab").ids == [BOS, BOS, AB]
    assert run("-m", package, "--tokenize", "-", stdin=b"<s>").ids == [BOS, *b"<s>"]


def test_perplexity_of_a_text_is_that_of_its_ids(run, package, tmp_path):
    path = tmp_path / "text"
    path.write_text("a small text, about nothing much\n" * 3)
    ids = run("-m", package, "--tokenize", path).ids
    (tmp_path / "ids").write_text(" ".join(map(str, ids)))
    expected = run("-m", package, "--ids", tmp_path / "ids", "--perplexity", "--ctx", 16, "--json").json
    assert run("-m", package, "--perplexity", path, "--ctx", 16, "--json").json == expected
    assert expected["scored_ids"] > 50


def test_text_that_cannot_be(run, package, tmp_path):
    model = package / "model.mlb"
    assert run("-m", package, "--prompt", "a", "--ids", "1").code == 2
    assert run("-m", model, "--prompt", "a").code == 2
    assert "--tokenizer" in run("-m", model, "--prompt", "a").err
    assert run("-m", tmp_path, "--prompt", "a").status == "ML_E_IO"
    assert run("-m", package, "--prompt-file", tmp_path / "none").status == "ML_E_IO"
    assert run("-m", package, "--prompt", "a" * 3000).status == "ML_E_CONTEXT"
    assert run("-m", run.model(), "--tokenizer", package / "tokenizer.mlt", "--prompt", "a").status == "ML_E_SHAPE"


def test_empty_prompt_is_bos_where_there_is_one(run, package):
    assert run("-m", package, "--prompt", "", "-n", 3).code == 0
