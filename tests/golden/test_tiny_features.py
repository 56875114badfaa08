"""The engine against the float64 reference, for every feature of the format alone and all together (tools/tiny.py)."""

from dataclasses import replace

import numpy as np
import pytest
from mlb import FLAG_LINEAR, MASK_TOK_EMB, MASK_WCLS, read_model, write_model
from tiny import FEATURES, write_tiny

from oracle.engine import Engine
from oracle.importance import expected_importance
from oracle.logit_bounds import compare_emulated, compare_exact, compare_sums
from oracle.reference import logits_of

PROMPT = 40  # tokens: more than any window of tiny.py


@pytest.fixture(params=FEATURES)
def tiny(request, tmp_path):
    """Path, opened model and prompt of one feature."""
    path = tmp_path / f"{request.param}.mlb"
    write_tiny(path, request.param)
    model = read_model(path)
    return path, model, np.random.default_rng(3).integers(0, model.header.vocab, PROMPT).tolist()


def test_exact(ml_run, tiny):
    path, model, tokens = tiny
    compare_exact(Engine(ml_run).logits(path, tokens, "--exact"), logits_of(model, tokens))


def test_production(ml_run, tiny):
    path, model, tokens = tiny
    compare_emulated(Engine(ml_run).logits(path, tokens), logits_of(model, tokens, quantize_activations=True))


def test_quantized_cache(ml_run, tiny):
    path, model, tokens = tiny
    tokens = tokens[:24]  # three windows
    engine = Engine(ml_run)
    exact, production = engine.logits(path, tokens, "--exact", "--kv", "q8"), engine.logits(path, tokens, "--kv", "q8")
    compare_emulated(exact, logits_of(model, tokens, quantize_cache=True))
    compare_emulated(production, logits_of(model, tokens, quantize_activations=True, quantize_cache=True))
    changes = np.any(exact != engine.logits(path, tokens, "--exact"))
    assert changes == any(not flags & FLAG_LINEAR for flags in model.layer_flags or [0])


def test_importance(ml_run, tiny):
    path, model, tokens = tiny
    actual = Engine(ml_run).importance(path, tokens, "--exact")
    expected = expected_importance(model, tokens)
    assert (actual.version, actual.layer_tokens, actual.classifier_tokens) == (expected.version, PROMPT, PROMPT)
    assert actual.sums.keys() == expected.sums.keys()
    for name, sums in expected.sums.items():
        compare_sums(actual.sums[name], sums, name)


@pytest.mark.parametrize("feature", ["llama", "mask_shared", "gemma2"])
def test_a_shared_classifier_is_the_embedding_written_out(ml_run, tmp_path, feature):
    tied, untied = tmp_path / "tied.mlb", tmp_path / "untied.mlb"
    write_tiny(tied, feature)
    model = read_model(tied)
    header = replace(model.header, shared_classifier=0, q8_mask=model.header.q8_mask and MASK_TOK_EMB | MASK_WCLS)
    write_model(
        untied, header, model.layer_flags, lambda spec: model.raw("tok_emb" if spec.name == "wcls" else spec.name)
    )
    assert untied.stat().st_size > tied.stat().st_size
    for mode in ((), ("--exact",)):
        answers = [Engine(ml_run).logits(path, range(40), *mode).tobytes() for path in (tied, untied)]
        assert answers[0] == answers[1]
