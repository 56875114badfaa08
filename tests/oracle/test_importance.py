"""The sums of squares of ml_run --imatrix against those that hooks in transformers collect."""

import pytest
import torch

from oracle.engine import Engine
from oracle.families import CASES
from oracle.hugging_face import config_of, load_mlb, logits, prompt, random_model, write_mlb
from oracle.importance import expected_importance
from oracle.logit_bounds import compare_sums

SEED = 31
SLOTS = {  # where transformers has the matrices that stand for the slots of a layer
    "self_attn.q_proj": "wq",
    "linear_attn.in_proj_qkv": "wq",
    "self_attn.o_proj": "wo",
    "linear_attn.out_proj": "wo",
    "mlp.gate_proj": "w1",
    "mlp.down_proj": "w2",
}


def hooked_sums(model, tokens):
    """By layers.<n>.<slot> and "classifier", the sum over positions of the squared inputs."""
    sums = {}

    def watch(name, module):
        def hook(module, inputs):
            sums[name] = (inputs[0].detach().reshape(-1, inputs[0].shape[-1]) ** 2).sum(0)

        return module.register_forward_pre_hook(hook)

    hooks = [watch("classifier", model.lm_head)]
    for number, layer in enumerate(model.model.layers):
        for name, slot in SLOTS.items():
            parent, _, child = name.partition(".")
            if hasattr(layer, parent):
                hooks.append(watch(f"layers.{number}.{slot}", getattr(getattr(layer, parent), child)))
    logits(model, tokens)
    for hook in hooks:
        hook.remove()
    assert all(value.dtype == torch.float64 for value in sums.values())
    return {name: value.numpy() for name, value in sums.items()}


def padded(sums, like):
    """The FFN's inner channels may be more in the file than in transformers; the added ones are zero."""
    assert not like[len(sums) :].any()
    return like[: len(sums)]


@pytest.fixture(params=[name for name, case in CASES.items() if case.golden])
def model_and_file(request, tmp_path):
    case = CASES[request.param]
    config = config_of(case)
    model = random_model(config, SEED)
    path = tmp_path / "model.mlb"
    mlb = write_mlb(model, config, case, path)
    load_mlb(model, config, mlb)
    return model, mlb, path, prompt(config, case.prompt, SEED)


def test_reference_sums_are_those_of_transformers(model_and_file):
    model, mlb, _, tokens = model_and_file
    expected = hooked_sums(model, tokens)
    actual = expected_importance(mlb, tokens).sums
    assert actual.keys() == expected.keys()
    for name, sums in expected.items():
        assert padded(sums, actual[name]) == pytest.approx(sums, rel=1e-10)


def test_engine_sums_are_those_of_transformers(ml_run, model_and_file):
    model, _, path, tokens = model_and_file
    expected = hooked_sums(model, tokens)
    actual = Engine(ml_run).importance(path, tokens, "--exact")
    assert (actual.layer_tokens, actual.classifier_tokens) == (len(tokens), len(tokens))
    assert actual.sums.keys() == expected.keys()
    for name, sums in expected.items():
        compare_sums(padded(sums, actual.sums[name]), sums, name)
