"""config.json to header, tensors to arrays: published shapes, older spellings, and what is refused.

That the defaults are those of transformers, and that the weights end up where they belong, is tested in tests/oracle.
"""

import math

import numpy as np
import pytest
from hf_map import UnsupportedModel, canonical_name, header_from_config, plan, restore
from mlb import (
    ACT_GELU,
    FLAG_LINEAR,
    FLAG_LOCAL_ROPE,
    FLAG_NOPE,
    FLAG_WINDOW,
    Q4_0,
    Q8_0,
    ROPE_LINEAR,
    ROPE_LLAMA3,
    ROPE_PLAIN,
    ROPE_YARN,
    tensor_specs,
)

SMALL = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def small(model_type="llama", **changes):
    return SMALL | {"model_type": model_type} | changes


def header_of(config, **options):
    return header_from_config(config, **{"wtype": Q8_0} | options)[0]


def flags_of(config):
    return header_from_config(config, wtype=Q8_0)[1]


def fields(header, *names):
    return tuple(getattr(header, name) for name in names)


# ---------------------------------------------------------------- published models


def test_llama_3_2_1b():
    header, flags = header_from_config(
        {
            "model_type": "llama",
            "attention_bias": False,
            "head_dim": 64,
            "hidden_act": "silu",
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "max_position_embeddings": 131072,
            "mlp_bias": False,
            "num_attention_heads": 32,
            "num_hidden_layers": 16,
            "num_key_value_heads": 8,
            "pretraining_tp": 1,
            "rms_norm_eps": 1e-05,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
            "tie_word_embeddings": True,
            "vocab_size": 128256,
        },
        wtype=Q4_0,
        q8_mask=1,
        scale_f16=True,
    )
    assert flags is None
    assert fields(header, "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads") == (2048, 8192, 16, 32, 8)
    assert fields(header, "head_dim", "vocab", "max_seq", "shared_classifier") == (0, 128256, 131072, 1)
    assert fields(header, "rope_type", "rope_factor", "rope_theta", "rope_orig_max_seq") == (
        ROPE_LLAMA3,
        32,
        500000,
        8192,
    )
    assert fields(header, "rope_low_freq_factor", "rope_high_freq_factor") == (1, 4)
    assert fields(header, "wtype", "q8_mask", "scale_f16") == (Q4_0, 1, 1)


def test_qwen3_0_6b_states_its_head_size():
    header = header_of(
        {
            "model_type": "qwen3",
            "attention_bias": False,
            "head_dim": 128,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "max_position_embeddings": 40960,
            "max_window_layers": 28,
            "num_attention_heads": 16,
            "num_hidden_layers": 28,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "vocab_size": 151936,
        }
    )
    assert fields(header, "head_dim", "q_dim", "kv_dim", "qk_norm", "qkv_bias") == (128, 2048, 1024, 1, 0)
    assert fields(header, "rope_type", "rope_theta", "sliding_window") == (ROPE_PLAIN, 1e6, 0)


def test_qwen2_5_has_biases_although_its_config_does_not_say_so():
    header = header_of(
        {
            "model_type": "qwen2",
            "hidden_size": 896,
            "intermediate_size": 4864,
            "max_position_embeddings": 32768,
            "max_window_layers": 21,
            "num_attention_heads": 14,
            "num_hidden_layers": 24,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0,
            "sliding_window": 32768,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "vocab_size": 151936,
        }
    )
    assert fields(header, "qkv_bias", "head_size", "sliding_window", "layer_flags") == (1, 64, 0, 0)


def test_smollm3_leaves_every_fourth_layer_unrotated():
    flags = flags_of({"model_type": "smollm3"})
    assert len(flags) == 36
    assert [layer for layer, flag in enumerate(flags) if flag == FLAG_NOPE] == list(range(3, 36, 4))
    assert set(flags) == {0, FLAG_NOPE}


def test_gemma_2_2b():
    header, flags = header_from_config(
        {
            "model_type": "gemma2",
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "head_dim": 256,
            "hidden_act": "gelu_pytorch_tanh",
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "max_position_embeddings": 8192,
            "num_attention_heads": 8,
            "num_hidden_layers": 26,
            "num_key_value_heads": 4,
            "query_pre_attn_scalar": 256,
            "rms_norm_eps": 1e-06,
            "rope_theta": 10000.0,
            "sliding_window": 4096,
            "vocab_size": 256000,
        },
        wtype=Q8_0,
    )
    assert flags == bytes([FLAG_WINDOW, 0] * 13)
    assert fields(header, "attn_softcap", "final_softcap", "act", "post_norms") == (50, 30, ACT_GELU, 1)
    assert fields(header, "embed_scale", "attn_scale", "shared_classifier", "qk_norm") == (48, 0, 1, 0)


def test_gemma_3_4b_scales_its_global_layers_only():
    """What the published file says, "text_config" and all; the rest are the family's defaults."""
    config = {
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    }
    header, flags = header_from_config(config, wtype=Q8_0)
    local = FLAG_WINDOW | FLAG_LOCAL_ROPE
    assert flags == bytes([0 if (layer + 1) % 6 == 0 else local for layer in range(34)])
    assert fields(header, "rope_type", "rope_factor", "rope_theta", "rope_local_theta") == (ROPE_LINEAR, 8, 1e6, 1e4)
    assert fields(header, "sliding_window", "head_dim", "n_heads", "n_kv_heads") == (1024, 256, 8, 4)
    assert fields(header, "vocab", "shared_classifier", "final_softcap", "attn_softcap") == (262208, 1, 0, 0)
    assert header.embed_scale == np.float32(math.sqrt(2560))


def test_mistral_has_a_window_on_all_layers_or_none():
    windowed = header_of(small("mistral", sliding_window=16))
    assert fields(windowed, "sliding_window", "layer_flags") == (16, 0)
    assert header_of(small("mistral", sliding_window=None)).sliding_window == 0


def test_qwen3_5():
    config = {
        "model_type": "qwen3_5",
        "tie_word_embeddings": True,
        "text_config": small("qwen3_5_text")
        | {"head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16}
        | {"linear_value_head_dim": 8, "attn_output_gate": True, "tie_word_embeddings": False}
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}},
    }
    header, flags = header_from_config(config, wtype=Q8_0)
    assert flags == bytes([FLAG_LINEAR] * 3 + [0])
    assert fields(header, "lin_k_heads", "lin_v_heads", "lin_k_dim", "lin_v_dim", "lin_conv") == (2, 4, 16, 8, 4)
    assert fields(header, "rot_dim", "attn_gate", "qk_norm", "shared_classifier") == (8, 1, 1, 1)


def test_no_linear_layer_no_linear_fields():
    header, flags = header_from_config(small("qwen3_5_text", layer_types=["full_attention"] * 4), wtype=Q8_0)
    assert flags is None and header.lin_k_heads == 0


# ---------------------------------------------------------------- RoPE, old and new


YARN = {"factor": 4.0, "original_max_position_embeddings": 32}


@pytest.mark.parametrize(
    "config",
    [
        {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", **YARN}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "yarn", **YARN}},
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5, **YARN}},
        {"rope_theta": 5e5, "rope_parameters": {"rope_type": "yarn", **YARN}},
        {"rope_theta": 1.0, "rope_scaling": {"rope_type": "yarn", "rope_theta": 5e5, **YARN}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", **YARN, "beta_fast": 0, "beta_slow": None}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", **YARN, "factor": None}, "max_position_embeddings": 128},
        {
            "rope_theta": 5e5,
            "rope_scaling": {"type": "yarn", "factor": 4.0},
            "original_max_position_embeddings": 32,
        },
    ],
)
def test_spellings_of_yarn(config):
    header = header_of(small(**config))
    assert fields(header, "rope_type", "rope_theta", "rope_factor", "rope_orig_max_seq") == (ROPE_YARN, 5e5, 4, 32)
    assert fields(header, "rope_low_freq_factor", "rope_high_freq_factor") == (32, 1)
    assert header.rope_attn_factor == np.float32(0.1 * math.log(4) + 1)


@pytest.mark.parametrize(
    "given,factor",
    [
        ({"attention_factor": 1.25, "mscale": 2.0, "mscale_all_dim": 1.0}, 1.25),
        ({"mscale": 2.0, "mscale_all_dim": 1.0}, (0.2 * math.log(4) + 1) / (0.1 * math.log(4) + 1)),
        ({"mscale": 2.0}, 0.1 * math.log(4) + 1),
        ({"factor": 0.5}, 1.0),
    ],
)
def test_attention_factor_of_yarn(given, factor):
    header = header_of(small(rope_theta=1e4, rope_scaling={"type": "yarn", **YARN, **given}))
    assert header.rope_attn_factor == np.float32(factor)


@pytest.mark.parametrize("scaling", [None, {}, {"rope_type": "default"}, {"type": "default", "factor": 3.0}])
def test_no_scaling(scaling):
    header = header_of(small(rope_theta=20000.0, rope_scaling=scaling))
    assert fields(header, "rope_type", "rope_theta", "rope_factor") == (ROPE_PLAIN, 20000, 0)


def test_gemma_3_old_and_new_say_the_same():
    old = small(
        "gemma3_text", rope_theta=5e4, rope_local_base_freq=3e2, rope_scaling={"rope_type": "linear", "factor": 2}
    )
    new = small(
        "gemma3_text",
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 2, "rope_theta": 5e4},
            "sliding_attention": {"rope_type": "default", "rope_theta": 3e2},
        },
    )
    assert header_of(old) == header_of(new)
    assert fields(header_of(old), "rope_theta", "rope_local_theta") == (5e4, 3e2)


# ---------------------------------------------------------------- layers, defaults, storage


@pytest.mark.parametrize(
    "changes,window,flags",
    [
        ({"use_sliding_window": False, "sliding_window": 8}, 0, None),
        ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 4}, 0, None),
        ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}, 8, None),
        ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 3}, 8, bytes([0, 0, 0, 1])),
        (
            {
                "use_sliding_window": True,
                "sliding_window": 8,
                "layer_types": ["sliding_attention", "full_attention"] * 2,
            },
            8,
            bytes([1, 0, 1, 0]),
        ),
    ],
)
def test_windows_of_qwen(changes, window, flags):
    header, got = header_from_config(small("qwen2", **changes), wtype=Q8_0)
    assert (header.sliding_window, got) == (window, flags)


def test_gemma_without_a_window_attends_to_all():
    header, flags = header_from_config(small("gemma2", sliding_window=None), wtype=Q8_0)
    assert (header.sliding_window, flags) == (0, None)
    header, flags = header_from_config(small("gemma3_text", sliding_window=None), wtype=Q8_0)
    assert (header.sliding_window, flags) == (0, bytes([FLAG_LOCAL_ROPE] * 4))


def test_smollm3_window_and_no_rope():
    flags = flags_of(
        small("smollm3", use_sliding_window=True, sliding_window=8, no_rope_layers=[1, 0, 1, 1, 0], layer_types=None)
    )
    assert flags == bytes([0, FLAG_NOPE | FLAG_WINDOW, 0, 0])


@pytest.mark.parametrize(
    "model_type,tied",
    [("llama", 0), ("mistral", 0), ("qwen2", 0), ("qwen3", 0), ("smollm3", 1), ("gemma2", 1), ("gemma3_text", 1)],
)
def test_the_tie_flag_has_a_default_of_its_own_in_each_family(model_type, tied):
    assert header_of(small(model_type)).shared_classifier == tied
    assert header_of(small(model_type), tied=not tied).shared_classifier == 1 - tied
    assert header_of(small(model_type, tie_word_embeddings=not tied)).shared_classifier == 1 - tied


def test_context_may_be_chosen():
    assert header_of(small()).max_seq == 128
    assert header_of(small(), max_seq=4096).max_seq == 4096


def test_ffn_is_padded_to_whole_blocks():
    assert header_of(small(intermediate_size=75)).hidden_dim == 96
    assert header_of(small(intermediate_size=96)).hidden_dim == 96


# ---------------------------------------------------------------- what is refused


def linear(model_type="qwen3_5_text", **changes):
    sizes = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "head_dim": 32}
    return small(model_type, **sizes | {"linear_value_head_dim": 8} | changes)


REFUSED = {
    "model_type 'mixtral'": small("mixtral"),
    "model_type None": {name: value for name, value in small().items() if name != "model_type"},
    "model_type 'qwen3_next'": small("qwen3_next"),
    "hidden_act 'gelu'": small(hidden_act="gelu"),
    "hidden_act 'relu'": small(hidden_act="relu"),
    "hidden_act 'gelu_pytorch_tanh' of a qwen3_5": linear(hidden_act="gelu_pytorch_tanh"),
    "hidden_activation None": small("gemma2", hidden_activation=None),
    "attention_bias True of a llama": small(attention_bias=True),
    "attention_bias True of a qwen3": small("qwen3", attention_bias=True),
    "mlp_bias True": small(mlp_bias=True),
    "num_experts 8": small("qwen3", num_experts=8),
    "num_local_experts 4": small("mistral", num_local_experts=4),
    "quantization_config": small(quantization_config={"quant_method": "gptq"}),
    "use_bidirectional_attention True": small("gemma3_text", use_bidirectional_attention=True),
    "attn_logit_softcapping 50.0 of a gemma3_text": small("gemma3_text", attn_logit_softcapping=50.0),
    "final_logit_softcapping 30.0 of a llama": small(final_logit_softcapping=30.0),
    "attn_output_gate False of a qwen3_5": linear(attn_output_gate=False),
    "attn_output_gate True of a qwen3 ": small("qwen3", attn_output_gate=True),
    "rope_type 'dynamic'": small(rope_scaling={"type": "dynamic", "factor": 2.0}),
    "rope_type 'longrope'": small(rope_scaling={"type": "longrope", "factor": 2.0}),
    "rope_type 'yarn' of the sliding layers": small(
        "gemma3_text", rope_parameters={"sliding_attention": {"rope_type": "yarn", **YARN}}
    ),
    "rope_parameters .* by layer type": small("gemma3_text", rope_parameters={"rope_type": "default"}),
    "rope_parameters of its own for full_attention": small(
        "qwen3", rope_parameters={"full_attention": {"rope_type": "default"}}
    ),
    "factor of the RoPE scaling is None": small(rope_scaling={"type": "linear"}),
    "factor of the RoPE scaling is -1": small(rope_scaling={"type": "linear", "factor": -1}),
    "low_freq_factor of the RoPE scaling is None": small(rope_scaling={"type": "llama3", "factor": 8.0}),
    "high_freq_factor 1.0 must be above": small(
        rope_scaling={"type": "llama3", "factor": 8.0, "low_freq_factor": 1, "high_freq_factor": 1}
    ),
    "beta_slow 40.0 must be below": small(rope_scaling={"type": "yarn", **YARN, "beta_slow": 40}),
    "truncate False": small(rope_scaling={"type": "yarn", **YARN, "truncate": False}),
    "rope_theta is 0": small(rope_theta=0),
    "rope_theta is 'big'": small(rope_theta="big"),
    "rope_theta is inf": small(rope_theta=math.inf),
    "partial_rotary_factor 0.5 of a llama": small(partial_rotary_factor=0.5),
    "partial_rotary_factor 1.5": linear(partial_rotary_factor=1.5),
    "partial_rotary_factor 0.1 rotates 3": linear(partial_rotary_factor=0.1),
    "layer_types: 'chunked_attention'": small("qwen3", layer_types=["chunked_attention"] * 4),
    "layer_types names 3 layers": small("qwen3", layer_types=["full_attention"] * 3),
    "all layers of this mistral are sliding_attention": small(
        "mistral", layer_types=["full_attention", "sliding_attention"] * 2
    ),
    "no_rope_layers names 2 layers": small("smollm3", no_rope_layers=[1, 0], layer_types=["full_attention"] * 4),
    "sliding_window is -8": small("mistral", sliding_window=-8),
    "sliding_window 16777217": small("mistral", sliding_window=2**24 + 1),
    "hidden_size is 72, which must be a multiple of 32": small(hidden_size=72, head_dim=16),
    "hidden_size is not a multiple": small(num_attention_heads=7, num_key_value_heads=7),
    "head_dim is 15": small(head_dim=15, num_attention_heads=32),
    "× head_dim is 40": small(head_dim=10),
    "num_attention_heads is 4, which must be a multiple of 3": small(num_key_value_heads=3),
    "vocab_size is 2": small(vocab_size=2),
    "num_hidden_layers is 0": small(num_hidden_layers=0),
    "num_hidden_layers is True": small(num_hidden_layers=True),
    "hidden_size is 64.0": small(hidden_size=64.0),
    "intermediate_size is '96'": small(intermediate_size="96"),
    "rms_norm_eps is None": small(rms_norm_eps=None),
    "query_pre_attn_scalar is 0": small("gemma2", query_pre_attn_scalar=0),
    "linear_num_value_heads is 6, which must be a multiple of 4": linear(linear_num_value_heads=6),
    "linear_num_value_heads is 4, which must be a multiple of 12": linear(linear_num_key_heads=3),
    "linear_value_head_dim is 20": linear(linear_value_head_dim=5),
    "linear_conv_kernel_dim is 0": linear(linear_conv_kernel_dim=0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_expressed_is_refused_by_name(message):
    with pytest.raises(UnsupportedModel, match=message):
        header_of(REFUSED[message])


def test_a_context_past_the_format_is_refused():
    with pytest.raises(UnsupportedModel, match="16777217 positions"):
        header_of(small(), max_seq=2**24 + 1)


# ---------------------------------------------------------------- tensors


def planned(config):
    header, flags = header_from_config(config, wtype=Q8_0)
    return header, flags, plan(header, flags, config["model_type"], hidden_dim=config["intermediate_size"])


EVERY_FAMILY = {
    name: small(name, intermediate_size=75, tie_word_embeddings=False)
    for name in ("llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma2", "gemma3_text")
} | {"qwen3_5_text": linear(intermediate_size=75, tie_word_embeddings=False)}


@pytest.mark.parametrize("name", EVERY_FAMILY)
def test_every_array_has_a_source_and_there_is_a_way_back(name):
    config = EVERY_FAMILY[name]
    header, flags, sources = planned(config)
    specs = tensor_specs(header, flags)
    assert list(sources) == [spec.name for spec in specs]
    rng = np.random.default_rng(4)
    tensors = {source.tensor: rng.standard_normal(source.shape) for source in sources.values()}
    arrays = {name: source.apply(tensors[source.tensor]) for name, source in sources.items()}
    assert {spec.name: spec.shape for spec in specs} == {name: array.shape for name, array in arrays.items()}
    back = restore(sources, arrays)
    assert back.keys() == tensors.keys()
    for tensor, values in tensors.items():
        assert np.abs(back[tensor] - values).max() < 1e-12


def test_names_of_gemma_norms():
    sources = planned(EVERY_FAMILY["gemma3_text"])[2]
    assert sources["layers.2.ffn_norm"].tensor == "model.layers.2.pre_feedforward_layernorm.weight"
    assert sources["layers.2.post_attn_norm"].tensor == "model.layers.2.post_attention_layernorm.weight"
    assert planned(EVERY_FAMILY["llama"])[2]["layers.2.ffn_norm"].tensor == (
        "model.layers.2.post_attention_layernorm.weight"
    )


def test_ones_are_added_to_the_right_norms():
    for name, expected in (("gemma3_text", 2.0), ("qwen3_5_text", 2.0), ("llama", 1.0), ("qwen3", 1.0)):
        sources = planned(EVERY_FAMILY[name])[2]
        norms = {array: source for array, source in sources.items() if "norm" in array}
        for array, source in norms.items():
            gated = array.endswith("lnorm")
            assert set(source.apply(np.ones(source.shape, np.float32))) == {1.0 if gated else expected}, array


def test_a_shared_classifier_has_no_source():
    assert "wcls" not in planned(small("gemma2"))[2]


@pytest.mark.parametrize(
    "tensor,name",
    [
        ("model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        ("lm_head.weight", "lm_head.weight"),
        ("language_model.model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        ("model.language_model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        ("language_model.lm_head.weight", "lm_head.weight"),
        ("model.language_model.embed_tokens.weight", "model.embed_tokens.weight"),
        ("vision_tower.vision_model.embeddings.patch_embedding.weight", None),
        ("model.vision_tower.vision_model.encoder.layers.0.mlp.fc1.bias", None),
        ("multi_modal_projector.mm_soft_emb_norm.weight", None),
        ("model.visual.blocks.0.attn.qkv.weight", None),
        ("mtp.layers.0.self_attn.q_proj.weight", None),
        ("model.layers.3.self_attn.rotary_emb.inv_freq", None),
    ],
)
def test_names_in_checkpoints(tensor, name):
    assert canonical_name(tensor) == name
