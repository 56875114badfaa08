"""The engine against stored answers of transformers: every logit of every position. README.md says what is stored.

Exact mode must give the stored logits to 1e-4. Production mode, which quantizes activations, must be close to them, and
closer still to the same quantized arithmetic done in float64.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from mlb import read_model

from oracle.engine import Engine
from oracle.logit_bounds import compare_emulated, compare_exact, compare_production
from oracle.reference import logits_of

WAYS = ("--mmap", "--threads 3", "--batch 1", "--batch 7 --threads 2", "--isa scalar --mmap")

FOLDER = Path(__file__).parent
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
NAMES = sorted(MANIFEST["goldens"])


def stored(name):
    """Tokens and logits of a golden."""
    with np.load(FOLDER / f"{name}.npz") as golden:
        return golden["ids"].tolist(), golden["logits"]


def test_the_folder_holds_what_the_manifest_lists():
    assert len(NAMES) >= 15
    for suffix in (".mlb", ".npz"):
        assert sorted(path.stem for path in FOLDER.glob(f"*{suffix}")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_model_is_the_one_that_was_measured(name):
    data = (FOLDER / f"{name}.mlb").read_bytes()
    assert hashlib.sha256(data).hexdigest() == MANIFEST["goldens"][name]["model_sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_exact(ml_run, name):
    tokens, expected = stored(name)
    actual = Engine(ml_run).logits(FOLDER / f"{name}.mlb", tokens, "--exact")
    print(f"{name}: largest difference {compare_exact(actual, expected):.2g}")


@pytest.mark.parametrize("name", NAMES)
def test_production(ml_run, name):
    tokens, expected = stored(name)
    actual = Engine(ml_run).logits(FOLDER / f"{name}.mlb", tokens)
    emulated = logits_of(read_model(FOLDER / f"{name}.mlb"), tokens, quantize_activations=True)
    whole, least = compare_production(actual, expected), compare_emulated(actual, emulated)
    print(f"{name}: cosine {whole:.5f} with exact logits, at least {least:.6f} with emulated ones")


@pytest.mark.parametrize("name", NAMES)
def test_quantized_cache(ml_run, name):
    """Bytes for keys and values cost less than bytes for activations do: the bounds are those of test_production."""
    tokens, expected = stored(name)
    actual = Engine(ml_run).logits(FOLDER / f"{name}.mlb", tokens, "--exact", "--kv", "q8")
    print(f"{name}: cosine {compare_production(actual, expected):.6f} with exact logits")


def agreement(pairs):
    """The share of positions at which both logits have the same favourite."""
    return np.concatenate([actual.argmax(axis=1) == expected.argmax(axis=1) for actual, expected in pairs]).mean()


def test_production_keeps_the_favourite_at_95_percent_of_all_positions(ml_run):
    """Over all models together and near-ties included; one small random model alone has too many of those."""
    pairs = []
    for name in NAMES:
        tokens, expected = stored(name)
        pairs.append((Engine(ml_run).logits(FOLDER / f"{name}.mlb", tokens), expected))
    assert agreement(pairs) >= 0.95
    shifted = [(np.roll(actual, 1, axis=0), expected) for actual, expected in pairs]
    assert agreement(shifted) < 0.5
    assert agreement([(np.zeros_like(actual), expected) for actual, expected in pairs]) < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_same_bits_in_every_way_of_running(ml_run, name):
    tokens, _ = stored(name)
    engine, model = Engine(ml_run), FOLDER / f"{name}.mlb"
    usual = engine.logits(model, tokens)
    for way in (*WAYS, *(f"--isa {isa}" for isa in engine.isas())):
        assert engine.logits(model, tokens, *way.split()).tobytes() == usual.tobytes(), way
