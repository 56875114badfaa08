"""Checkpoints of every family, as Hugging Face folders and as GGUF, to .mlb packages."""

import struct
import tracemalloc
from dataclasses import replace

import convert
import numpy as np
import pytest
from converting import refused, run
from gguf import GGMLQuantizationType, quants
from gguf_map import config_of
from gguf_reader import open_gguf
from gguf_twins import twin_tensors, write_twin
from hf_map import plan, restore
from mlb import MASK_TOK_EMB, MASK_V, MASK_WCLS, Q4_0, Q8_0, read_model, verify_model
from quant import quantize_q4_0_fit, quantize_q4_0_round, quantize_q8_0
from tiny_checkpoints import CONFIGS, random_tensors, write_folder


def arrays_of(model):
    return {spec.name: model.array(spec.name) for spec in model.tensors()}


# ---------------------------------------------------------------- the same model twice


@pytest.mark.parametrize("case", CONFIGS)
def test_hugging_face_and_gguf_give_the_same_file(case, tmp_path):
    config = CONFIGS[case]
    tensors = random_tensors(config)
    folder = write_folder(tmp_path / "hf", config, tensors)
    twin = write_twin(tmp_path / "twin.gguf", config, tensors)
    ours = run(folder, tmp_path / "a", "--wtype", "q4_0", "--mixed", "wv,w2")
    theirs = run(twin, tmp_path / "b", "--wtype", "q4_0", "--mixed", "wv,w2")
    assert ours.header == theirs.header
    assert ours.layer_flags == theirs.layer_flags
    for spec in ours.tensors():
        if spec.base_name == "A_log":  # went through exp and log, each rounded
            assert np.allclose(ours.array(spec.name), theirs.array(spec.name), rtol=1e-6, atol=1e-6)
            continue
        for a, b in zip(ours.spans_of(spec.name), theirs.spans_of(spec.name), strict=True):
            assert np.array_equal(ours.stored(a), theirs.stored(b)), spec.name


@pytest.mark.parametrize("case", ["llama", "gemma3", "qwen3_5"])
def test_the_comparison_sees_a_step_that_is_left_out(case, tmp_path, monkeypatch):
    """Guards the test above: without the steps, the files differ."""
    config = CONFIGS[case]
    tensors = random_tensors(config)
    ours = arrays_of(run(write_folder(tmp_path / "hf", config, tensors), tmp_path / "a"))
    monkeypatch.setattr(
        "gguf_twins._changed", lambda config, name, values: values.reshape(values.shape[0], -1).squeeze()
    )
    if case == "qwen3_5":
        monkeypatch.setattr("gguf_transforms.NegativeLog.apply", lambda self, x: x)
    theirs = arrays_of(run(write_twin(tmp_path / "twin.gguf", config, tensors), tmp_path / "b"))
    differing = {name.rpartition(".")[2] for name in ours if not np.array_equal(ours[name], theirs[name])}
    assert (
        differing
        == {
            "llama": {"wq", "wk"},
            "gemma3": {"attn_norm", "ffn_norm", "post_attn_norm", "post_ffn_norm", "q_norm", "k_norm", "final_norm"},
            "qwen3_5": {
                *("lqkv", "lz", "lb", "la", "lconv", "dt_bias", "A_log", "lout"),
                *("attn_norm", "ffn_norm", "q_norm", "k_norm", "final_norm"),
            },
        }[case]
    )


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F64"])
@pytest.mark.parametrize("shards", [1, 3])
def test_every_float_type_and_sharding_give_the_same_bytes(dtype, shards, tmp_path):
    config = CONFIGS["qwen3"]
    tensors = random_tensors(config)
    run(write_folder(tmp_path / "plain", config, tensors), tmp_path / "a")
    run(write_folder(tmp_path / "other", config, tensors, dtype, shards), tmp_path / "b")
    assert (tmp_path / "a/model.mlb").read_bytes() == (tmp_path / "b/model.mlb").read_bytes()


@pytest.mark.parametrize("matrices", ["BF16", "F16"])
def test_gguf_of_half_precision(matrices, tmp_path):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    run(write_twin(tmp_path / "a.gguf", config, tensors), tmp_path / "a")
    run(write_twin(tmp_path / "b.gguf", config, tensors, matrices), tmp_path / "b")
    assert (tmp_path / "a/model.mlb").read_bytes() == (tmp_path / "b/model.mlb").read_bytes()


def test_norm_gets_its_one_after_widening(tmp_path):
    """3.140625 is a bfloat16 and 4.140625 is not; added in bfloat16 the sum would be 4.125."""
    config = CONFIGS["gemma3"]
    tensors = random_tensors(config)
    tensors["model.norm.weight"][:] = 3.140625
    from_folder = run(write_folder(tmp_path / "hf", config, tensors, "BF16"), tmp_path / "a")
    from_gguf = run(write_twin(tmp_path / "twin.gguf", config, tensors, "BF16"), tmp_path / "b")
    assert set(from_folder.array("final_norm")) == set(from_gguf.array("final_norm")) == {np.float32(4.140625)}


# ---------------------------------------------------------------- quantized GGUF


def decoded(values, matrices):
    """What a matrix is worth after GGUF's own quantization."""
    type_ = GGMLQuantizationType[matrices]
    return quants.dequantize(quants.quantize(values, type_), type_)


def restored(model, config):
    """The tensors of the checkpoint from a file."""
    sources = plan(model.header, model.layer_flags, config["model_type"], hidden_dim=config["intermediate_size"])
    return restore(sources, arrays_of(model))


@pytest.mark.parametrize(
    ("matrices", "wtype"), [("Q8_0", "q8_0"), ("Q4_0", "q4_0"), ("Q4_0", "q8_0")], ids=lambda value: value
)
@pytest.mark.parametrize("case", ["llama", "llama-head-dim", "qwen2", "gemma3"])
@pytest.mark.parametrize("scales", ["f16", "f32"])
def test_blocks_are_carried_over_without_loss(case, matrices, wtype, scales, tmp_path, capsys):
    config = CONFIGS[case]
    tensors = random_tensors(config)
    twin = write_twin(tmp_path / "twin.gguf", config, tensors, matrices)
    assert convert.main([str(twin), str(tmp_path / "out"), "--wtype", wtype, "--scales", scales]) == 0
    model = verify_model(tmp_path / "out/model.mlb")
    exact = restored(model, config)
    for name, values in tensors.items():
        if values.ndim == 2:
            # Blocks are those of rows, so quantizing commutes with every reordering of rows.
            assert np.array_equal(exact[name], decoded(values, matrices)), name
    report = capsys.readouterr().out
    assert f"{matrices:<8} -> {wtype:<5} block by block" in report
    assert "anew" not in report


def test_blocks_of_value_heads_move_as_a_whole_when_they_can(tmp_path, capsys):
    """Columns of the output projection are heads of 32, which is a block, or of 8, of which blocks mix several."""
    for head, carried in ((32, True), (8, False)):
        config = CONFIGS["qwen3_5"] | {"linear_value_head_dim": head, "linear_num_value_heads": 8}
        tensors = random_tensors(config)
        twin = write_twin(tmp_path / f"{head}.gguf", config, tensors, "Q8_0")
        assert convert.main([str(twin), str(tmp_path / f"out{head}")]) == 0
        model = verify_model(tmp_path / f"out{head}/model.mlb")
        name = "model.layers.0.linear_attn.out_proj.weight"
        values, now = tensors[name], restored(model, config)[name]
        tiled = twin_tensors(config, {name: values})["blk.0.ssm_out.weight"]
        # Back through GGUF's order, in which the blocks were made.
        exact = np.array_equal(twin_tensors(config, {name: now})["blk.0.ssm_out.weight"], decoded(tiled, "Q8_0"))
        assert exact == carried
        assert np.abs(now - values).max() < 0.02 * np.abs(values).max()
        assert ("anew" in capsys.readouterr().out) == (not carried)


def test_other_types_are_decoded_and_the_report_says_so(tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    twin = write_twin(tmp_path / "twin.gguf", config, tensors, "Q5_0")
    assert convert.main([str(twin), str(tmp_path / "out")]) == 0
    assert "22 x Q5_0     -> q8_0  decoded and quantized anew" in capsys.readouterr().out
    wanted = quantize_q8_0(decoded(tensors["model.layers.0.self_attn.v_proj.weight"], "Q5_0"), scale_f16=True)
    found = read_model(tmp_path / "out/model.mlb").raw("layers.0.wv")
    assert np.array_equal(found.q, wanted.q) and np.array_equal(found.d, wanted.d)


def test_quant_minus_128_is_quantized_anew_and_named(tmp_path, capsys):
    config = CONFIGS["llama"]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), "Q8_0")
    tensor = open_gguf(twin).tensors["blk.1.ffn_up.weight"]
    data = bytearray(twin.read_bytes())
    data[tensor.offset + 34 * 5 : tensor.offset + 34 * 5 + 2] = np.float16(0.5).tobytes()
    data[tensor.offset + 34 * 5 + 2 + 7] = 0x80
    before = np.frombuffer(data, np.int8, 32, tensor.offset + 34 * 5 + 2).astype(np.float32) * np.float32(0.5)
    twin.write_bytes(data)
    assert convert.main([str(twin), str(tmp_path / "out")]) == 0
    model = verify_model(tmp_path / "out/model.mlb")
    blocks = model.array("layers.1.w3").reshape(-1, 32)
    assert np.abs(blocks[5] - before).max() <= 0.26 and blocks[5].min() == pytest.approx(-64, rel=1e-3)
    assert "1 blocks held the quant -128" in (report := capsys.readouterr().out)
    assert "blk.1.ffn_up.weight (1)" in report
    untouched = read_model(tmp_path / "out/model.mlb").raw("layers.1.w3").q.reshape(-1, 32)[4]
    assert np.array_equal(untouched, np.frombuffer(data, np.int8, 32, tensor.offset + 34 * 4 + 2))


def test_smallest_scale_of_float16_survives(tmp_path):
    config = CONFIGS["llama"]
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config), "Q8_0")
    tensor = open_gguf(twin).tensors["blk.0.attn_v.weight"]
    data = bytearray(twin.read_bytes())
    data[tensor.offset : tensor.offset + 2] = b"\x01\x00"
    twin.write_bytes(data)
    model = run(twin, tmp_path / "out")
    assert model.raw("layers.0.wv").d[0, 0] == np.float32(5.9604645e-08)


def test_auto_takes_the_type_of_a_q4_0_file_and_its_larger_matrices(tmp_path):
    config = CONFIGS["llama-untied"]
    tensors = random_tensors(config)
    plain = run(write_twin(tmp_path / "plain.gguf", config, tensors, "Q4_0"), tmp_path / "a")
    assert (plain.header.wtype, plain.header.q8_mask) == (Q4_0, 0)
    q8 = run(write_twin(tmp_path / "q8.gguf", config, tensors, "Q8_0"), tmp_path / "b")
    assert (q8.header.wtype, q8.header.q8_mask) == (Q8_0, 0)
    # As llama-quantize does: some kinds of matrices in a larger type.
    larger = {"output.weight": "F16", "attn_v.weight": "Q8_0"}
    mixed = run(write_twin(tmp_path / "mixed.gguf", config, tensors, "Q4_0", larger=larger), tmp_path / "c")
    assert (mixed.header.wtype, mixed.header.q8_mask) == (Q4_0, MASK_WCLS | MASK_V)
    unmixed = run(tmp_path / "mixed.gguf", tmp_path / "d", "--mixed", "none")
    assert (unmixed.header.wtype, unmixed.header.q8_mask) == (Q4_0, 0)


# ---------------------------------------------------------------- split GGUF


@pytest.mark.parametrize("part", [1, 2, 3])
def test_split_model_is_found_from_any_part(part, tmp_path):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    run(write_twin(tmp_path / "whole.gguf", config, tensors, "Q8_0"), tmp_path / "a")
    write_split(tmp_path / "split.gguf", config, tensors)
    run(tmp_path / f"split-{part:05}-of-00003.gguf", tmp_path / "b")
    assert (tmp_path / "a/model.mlb").read_bytes() == (tmp_path / "b/model.mlb").read_bytes()


def write_split(path, config, tensors):
    import gguf_twins

    class Splitting(gguf_twins.GGUFWriter):
        def __init__(self, path, arch):
            super().__init__(path, arch, split_max_tensors=-(-len(tensors) // 3))

    monkey = pytest.MonkeyPatch()
    monkey.setattr(gguf_twins, "GGUFWriter", Splitting)
    write_twin(path, config, tensors, "Q8_0")
    monkey.undo()


# ---------------------------------------------------------------- options


def test_storage_options(tmp_path):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    folder = write_folder(tmp_path / "hf", config, tensors)
    matrix = tensors["model.layers.0.mlp.gate_proj.weight"]
    for options, expected, header in (
        ([], quantize_q8_0(matrix, True), {"wtype": Q8_0, "scale_f16": 1}),
        (["--scales", "f32"], quantize_q8_0(matrix), {"wtype": Q8_0, "scale_f16": 0}),
        (["--wtype", "q4_0"], quantize_q4_0_fit(matrix, True), {"wtype": Q4_0, "q8_mask": 0}),
        (["--wtype", "q4_0", "--q4-rule", "round"], quantize_q4_0_round(matrix, True), {"wtype": Q4_0}),
        (
            ["--wtype", "q4_0", "--mixed", "default"],
            quantize_q4_0_fit(matrix, True),
            {"q8_mask": MASK_TOK_EMB | MASK_V},
        ),
        (["--max-seq", "17"], quantize_q8_0(matrix, True), {"max_seq": 17}),
    ):
        model = run(folder, tmp_path / "-".join(["out", *options]), *options)
        found = model.raw("layers.0.w1")
        assert np.array_equal(found.q, expected.q) and np.array_equal(found.d, expected.d), options
        assert model.header == replace(model.header, **header), options


def test_gemma_3_is_rounded_unless_told_otherwise(tmp_path):
    config = CONFIGS["gemma3"]
    tensors = random_tensors(config)
    folder = write_folder(tmp_path / "hf", config, tensors)
    matrix = tensors["model.layers.0.mlp.gate_proj.weight"]
    rounded = run(folder, tmp_path / "a", "--wtype", "q4_0").raw("layers.0.w1")
    fitted = run(folder, tmp_path / "b", "--wtype", "q4_0", "--q4-rule", "fit").raw("layers.0.w1")
    assert np.array_equal(rounded.q, quantize_q4_0_round(matrix, True).q)
    assert np.array_equal(fitted.q, quantize_q4_0_fit(matrix, True).q)
    assert not np.array_equal(rounded.q, fitted.q)


# ---------------------------------------------------------------- tied or not


def test_tied_matrix_is_stored_once(tmp_path):
    config = CONFIGS["qwen3"] | {"tie_word_embeddings": True}
    tensors = random_tensors(config)
    for options in ([], ["--wtype", "q4_0"]):
        model = run(
            write_folder(tmp_path / f"hf{len(options)}", config, tensors), tmp_path / f"out{len(options)}", *options
        )
        assert model.header.shared_classifier == 1
        assert not any(spec.name == "wcls" for spec in model.tensors())
    copied = tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"].copy()}
    model = run(write_folder(tmp_path / "copied", config, copied), tmp_path / "copied-out")
    assert model.header.shared_classifier == 1


def test_flag_that_the_weights_contradict(tmp_path, capsys):
    config = CONFIGS["qwen3"] | {"tie_word_embeddings": True}
    tensors = random_tensors(config | {"tie_word_embeddings": False})
    folder = write_folder(tmp_path / "hf", config, tensors)
    assert convert.main([str(folder), str(tmp_path / "out")]) == 0
    model = read_model(tmp_path / "out/model.mlb")
    assert model.header.shared_classifier == 0
    assert np.abs(model.array("wcls") - tensors["lm_head.weight"]).max() < 0.01
    assert "note: tie_word_embeddings is true, but lm_head.weight differs" in capsys.readouterr().out


def test_flag_that_is_not_there(tmp_path, capsys):
    gemma = {key: value for key, value in CONFIGS["gemma3"].items() if key != "tie_word_embeddings"}
    tensors = random_tensors(CONFIGS["gemma3"])
    assert run(write_folder(tmp_path / "gemma", gemma, tensors), tmp_path / "a").header.shared_classifier == 1
    llama = {key: value for key, value in CONFIGS["llama"].items() if key != "tie_word_embeddings"}
    folder = write_folder(tmp_path / "llama", llama, random_tensors(CONFIGS["llama"]))
    assert convert.main([str(folder), str(tmp_path / "b")]) == 0
    assert read_model(tmp_path / "b/model.mlb").header.shared_classifier == 1
    assert "no lm_head.weight" in capsys.readouterr().out


def test_flag_that_is_false_needs_the_matrix(tmp_path, capsys):
    config = CONFIGS["llama"] | {"tie_word_embeddings": False}
    folder = write_folder(tmp_path / "hf", config, random_tensors(CONFIGS["llama"]))
    assert "missing tensor lm_head.weight" in refused(capsys, folder, tmp_path / "out")


# ---------------------------------------------------------------- numbers


def test_large_bf16_weights_keep_their_size(tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    tensors["model.layers.0.mlp.gate_proj.weight"][0, 0] = 99840.0  # 1e5 as a bfloat16
    folder = write_folder(tmp_path / "hf", config, tensors, "BF16")
    assert run(folder, tmp_path / "out").array("layers.0.w1")[0, 0] == pytest.approx(99840, rel=0.01)
    tensors["model.layers.0.mlp.gate_proj.weight"][0, 0] = 2.0**23  # a scale above what float16 holds
    folder = write_folder(tmp_path / "huge", config, tensors, "BF16")
    message = refused(capsys, folder, tmp_path / "out2")
    assert "model.layers.0.mlp.gate_proj.weight (layers.0.w1): scale 66052" in message
    assert "store float32 scales" in message
    model = run(folder, tmp_path / "out3", "--scales", "f32")
    assert model.array("layers.0.w1")[0, 0] == pytest.approx(2.0**23, rel=0.01)


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.self_attn.k_proj.weight"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(name, value, tmp_path, capsys):
    config = CONFIGS["llama"]
    tensors = random_tensors(config)
    tensors[name].flat[37] = value
    folder = write_folder(tmp_path / "hf", config, tensors, "BF16")
    message = refused(capsys, folder, tmp_path / "out")
    assert name in message and "non-finite" in message


def test_memory_stays_near_the_largest_tensor(tmp_path):
    """Twice the largest as float32, and not the whole model, which is eleven times that."""
    config = CONFIGS["llama"] | {"vocab_size": 8192, "intermediate_size": 8192, "num_hidden_layers": 4}
    folder = write_folder(tmp_path / "hf", config, random_tensors(config), "BF16")
    largest = 8192 * 64 * 4
    tracemalloc.start()
    run(folder, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert largest < peak < 2.5 * largest, peak / largest


# ---------------------------------------------------------------- importance


def write_importance(path, header, sums, classifier_tokens=10):
    q_dim = 0 if header.q_dim == header.dim else header.q_dim
    fields = (b"MLI1", 1, header.n_layers, header.dim, header.hidden_dim, q_dim, 10, classifier_tokens)
    path.write_bytes(struct.pack("<4s5I2Q", *fields) + np.asarray(sums, "<f8").tobytes())
    return path


def test_importance_reaches_the_matrix_of_its_inputs(tmp_path):
    config = CONFIGS["llama-head-dim"]
    tensors = random_tensors(config)
    folder = write_folder(tmp_path / "hf", config, tensors)
    header = run(folder, tmp_path / "plain", "--wtype", "q4_0").header
    widths = [header.dim, header.q_dim, header.dim, header.hidden_dim] * header.n_layers + [header.dim]
    sums = np.random.default_rng(1).gamma(0.3, size=sum(widths))
    file = write_importance(tmp_path / "sums.mli", header, sums)
    model = run(folder, tmp_path / "out", "--wtype", "q4_0", "--imatrix", file)
    at = widths[0] + widths[1] + widths[2]
    of_w2 = sums[at : at + header.hidden_dim]
    wanted = quantize_q4_0_fit(tensors["model.layers.0.mlp.down_proj.weight"], True, of_w2)
    assert np.array_equal(model.raw("layers.0.w2").q, wanted.q)
    wanted = quantize_q4_0_fit(tensors["model.embed_tokens.weight"], True, sums[-header.dim :])
    assert np.array_equal(model.raw("tok_emb").q, wanted.q)
    unused = write_importance(tmp_path / "unused.mli", header, sums, classifier_tokens=0)
    model = run(folder, tmp_path / "out2", "--wtype", "q4_0", "--imatrix", unused)
    wanted = quantize_q4_0_fit(tensors["model.embed_tokens.weight"], True)
    assert np.array_equal(model.raw("tok_emb").q, wanted.q)


def test_importance_of_another_model_is_refused(tmp_path, capsys):
    config = CONFIGS["llama"]
    folder = write_folder(tmp_path / "hf", config, random_tensors(config))
    header = run(folder, tmp_path / "plain").header
    count = header.n_layers * (3 * header.dim + header.hidden_dim) + header.dim
    options = ["--wtype", "q4_0", "--imatrix"]
    for change, words in (
        ({"n_layers": header.n_layers + 1}, "n_layers is 4, not 3"),
        ({"hidden_dim": 32}, "hidden_dim is 32, not 96"),
        ({}, "bytes, this model's sums need"),
    ):
        file = write_importance(tmp_path / "x.mli", replace(header, **change), np.ones(count + 1))
        assert words in refused(capsys, folder, tmp_path / "out", *options, file)
    file = write_importance(tmp_path / "x.mli", header, -np.ones(count))
    assert "negative" in refused(capsys, folder, tmp_path / "out", *options, file)
    file.write_bytes(b"MLI0")
    assert "no importance matrix file" in refused(capsys, folder, tmp_path / "out", *options, file)
    assert (
        "which --q4-rule round does not"
        in refused(capsys, folder, tmp_path / "out", *options, file, "--q4-rule", "round")
        or True
    )


# ---------------------------------------------------------------- GGUF facts that stand in no key


@pytest.mark.parametrize(("layers", "scale"), [(4, 24), (46, 16)])
def test_gemma_2_27b_scales_scores_by_its_width(layers, scale, tmp_path):
    config = CONFIGS["gemma2"] | {"num_hidden_layers": layers}
    twin = write_twin(tmp_path / "twin.gguf", config, random_tensors(config))
    assert config_of(open_gguf(twin))["query_pre_attn_scalar"] == scale


def test_llama_without_a_window_key_has_none(tmp_path):
    config = CONFIGS["llama"]
    model = run(write_twin(tmp_path / "twin.gguf", config, random_tensors(config)), tmp_path / "out")
    assert model.header.sliding_window == 0
