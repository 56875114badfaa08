"""TinyLoop models against stored answers of the torch module, for one loop, the default, and twice the default."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from test_goldens import WAYS
from tinyloop import read_model, write_weights
from tinyloop_reference import logits as reference_logits

from oracle.engine import Engine
from oracle.logit_bounds import Mismatch, compare_emulated, compare_exact, compare_production
from oracle.tinyloop_emulation import emulated_logits

FOLDER = Path(__file__).parent / "tinyloop"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
NAMES = sorted(MANIFEST["goldens"])


def stored(name):
    """The ids, and (number of loops, logits) for each number that is stored."""
    with np.load(FOLDER / f"{name}.npz") as golden:
        runs = [(int(key.removeprefix("loops_")), golden[key]) for key in golden.files if key != "ids"]
        return golden["ids"].tolist(), sorted(runs, key=lambda run: run[0])


def model_of(name):
    return FOLDER / f"{name}.tinyloop"


def test_the_folder_holds_what_the_manifest_lists():
    assert len(NAMES) >= 4
    for suffix in (".tinyloop", ".npz"):
        assert sorted(path.stem for path in FOLDER.glob(f"*{suffix}")) == NAMES
    for name in NAMES:
        assert hashlib.sha256(model_of(name).read_bytes()).hexdigest() == MANIFEST["goldens"][name]["model_sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_exact(ml_run, name):
    ids, runs = stored(name)
    for loops, expected in runs:
        actual = Engine(ml_run).logits(model_of(name), ids, "--exact", "--loops", str(loops))
        print(f"{name}, {loops} loops: largest difference {compare_exact(actual, expected):.2g}")
    default = read_model(model_of(name)).header.default_loops
    compare_exact(Engine(ml_run).logits(model_of(name), ids, "--exact"), dict(runs)[default])


@pytest.mark.parametrize("name", NAMES)
def test_production(ml_run, name):
    ids, runs = stored(name)
    for loops, expected in runs:
        actual = Engine(ml_run).logits(model_of(name), ids, "--loops", str(loops))
        emulated = emulated_logits(read_model(model_of(name)), ids, loops)
        whole, least = compare_production(actual, expected), compare_emulated(actual, emulated)
        print(f"{name}, {loops} loops: cosine {whole:.5f} with exact logits, at least {least:.6f} with emulated ones")


@pytest.mark.parametrize("name", NAMES)
def test_the_bounds_tell_wrong_answers(name):
    """One loop more or less, ids in another order, zeros."""
    _, runs = stored(name)
    (_, one), (_, default), (_, twice) = runs
    for wrong in (one, twice, np.roll(default, 1, axis=0), np.zeros_like(default), default + 2e-3):
        with pytest.raises(Mismatch):
            compare_exact(wrong, default)
    for wrong in (one, np.roll(default, 1, axis=0), np.zeros_like(default)):
        with pytest.raises(Mismatch):
            compare_production(wrong, default)


@pytest.mark.parametrize("name", NAMES)
def test_same_bits_in_every_way_of_running(ml_run, name):
    ids, _ = stored(name)
    engine, model = Engine(ml_run), model_of(name)
    usual = engine.logits(model, ids)
    for way in (*WAYS, *(f"--isa {isa}" for isa in engine.isas())):
        assert engine.logits(model, ids, *way.split()).tobytes() == usual.tobytes(), way


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_body(ml_run, name):
    """Matrices of layers as the nearest halves, and inputs that are not quantized: nearer to exact logits."""
    ids, runs = stored(name)
    loops, expected = runs[1]
    model = read_model(model_of(name))
    weights = {
        key: value.astype(np.float16).astype(np.float32) if key.startswith("blocks.") and value.ndim == 2 else value
        for key, value in model.weights().items()
    }
    rounded = reference_logits(model.header, weights, ids, loops)
    engine, way = Engine(ml_run), ("--f16-body", "--loops", str(loops))
    compare_exact(engine.logits(model_of(name), ids, "--exact", *way), rounded)
    usual = engine.logits(model_of(name), ids, *way)
    if model.header.embed_factor_dim:  # nothing is left that quantizes
        assert np.abs(usual - rounded).max() < 1e-4
    for isa in engine.isas():
        assert engine.logits(model_of(name), ids, *way, "--threads", "3", "--batch", "1", "--isa", isa).tobytes() == (
            usual.tobytes()
        )


def test_every_tensor_is_read_and_used(ml_run, tmp_path):
    """A file in which one tensor is another one: the engine must give that file's logits, and they must be others."""
    name = "v3-int2-factored"
    ids, runs = stored(name)
    loops, unchanged = runs[1]
    model, changed = read_model(model_of(name)), tmp_path / "changed.tinyloop"
    weights = model.weights()
    for tensor in weights:
        write_weights(changed, model.header, weights | {tensor: np.roll(weights[tensor], 1, axis=-1) * 1.25})
        expected = reference_logits(model.header, read_model(changed).weights(), ids, loops)
        compare_exact(Engine(ml_run).logits(changed, ids, "--exact"), expected)
        with pytest.raises(Mismatch):
            compare_exact(expected, unchanged)
