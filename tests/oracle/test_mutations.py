"""Every mistake of mutations.py must be found by the comparisons with stored and computed logits."""

from pathlib import Path

import numpy as np
import pytest
import tinyloop
from mlb import read_model
from tiny import FEATURES, write_tiny

from oracle.engine import Engine
from oracle.logit_bounds import Mismatch, compare_emulated, compare_exact
from oracle.mutations import MUTATIONS, Workshop
from oracle.reference import logits_of
from oracle.tinyloop_emulation import emulated_logits

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
PROMPT = 40


@pytest.fixture(scope="module")
def workshop():
    return Workshop.open(ROOT)


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Models with prompts and right answers: (path, tokens, exact logits, logits of production mode)."""
    folder = tmp_path_factory.mktemp("tiny")
    asked = []
    for path in sorted(GOLDEN.glob("*.mlb")):
        with np.load(path.with_suffix(".npz")) as golden:
            asked.append((path, golden["ids"].tolist(), golden["logits"]))
    for feature in FEATURES:
        path = folder / f"{feature}.mlb"
        write_tiny(path, feature)
        model = read_model(path)
        tokens = np.random.default_rng(3).integers(0, model.header.vocab, PROMPT).tolist()
        asked.append((path, tokens, logits_of(model, tokens)))
    answers = [
        (*question, logits_of(read_model(question[0]), question[1], quantize_activations=True)) for question in asked
    ]
    for path in sorted(GOLDEN.glob("tinyloop/*.tinyloop")):
        model = tinyloop.read_model(path)
        with np.load(path.with_suffix(".npz")) as golden:
            tokens, exact = golden["ids"].tolist(), golden[f"loops_{model.header.default_loops}"]
        answers.append((path, tokens, exact, emulated_logits(model, tokens)))
    return answers


def finds(engine, mode, question):
    """Whether the comparison of one model in one mode fails."""
    path, tokens, exact, production = question
    try:
        if mode == "exact":
            compare_exact(engine.logits(path, tokens, "--exact", "--batch", "7"), exact)
        else:
            compare_emulated(engine.logits(path, tokens, "--isa", "scalar", "--batch", "7"), production)
    except Mismatch:
        return True
    return False


def test_the_unchanged_source_is_right(workshop, questions):
    engine = Engine(workshop.build(None))
    assert [q[0].stem for q in questions for mode in ("exact", "production") if finds(engine, mode, q)] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_is_found(workshop, questions, mutation):
    engine = Engine(workshop.build(mutation))
    for mode in mutation.modes:
        found_by = next((q[0].stem for q in questions if finds(engine, mode, q)), None)
        assert found_by, f"no {mode} comparison found it"
        print(f"{mode}: found by {found_by}")
