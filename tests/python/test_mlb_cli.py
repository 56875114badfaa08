"""The command line of tools/mlb.py: what it prints, its exit statuses, and one line for every mistake."""

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mlb_cli
import numpy as np
import pytest
import tiny
from bad_files import tiny_bytes
from mlb import E_FORMAT, FIELD_OFFSETS, Header, Quantized, iter_spans, read_model, tensor_specs, write_model
from mlb_layout import FLOAT_FIELDS
from tiny import make_tiny

SMALL = Header(dim=32, n_layers=1, n_heads=2, n_kv_heads=1, hidden_dim=64, vocab=5, max_seq=16)


@pytest.fixture
def tiny_file(tmp_path_factory: pytest.TempPathFactory):
    """Tiny models by feature, in a folder of their own."""
    folder = tmp_path_factory.mktemp("tiny")

    def path_of(feature: str) -> Path:
        path = folder / f"{feature}.mlb"
        path.write_bytes(tiny_bytes(feature))
        return path

    return path_of


def run(capsys, *arguments: object) -> tuple[int, list[str], list[str]]:
    """Exit status, lines of output, lines of errors."""
    try:
        status = mlb_cli.main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        status = exit_.code
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


@pytest.mark.parametrize("feature", tiny.FEATURES)
def test_inspect(feature: str, tiny_file, capsys):
    status, lines, errors = run(capsys, "inspect", tiny_file(feature))
    assert (status, errors) == (0, [])
    values = dict(line.split(" ", 1) for line in lines)
    assert len(values) == len(lines)  # each line begins with a name of its own
    header, flags, _ = make_tiny(feature)
    for name in FIELD_OFFSETS:
        if name in FLOAT_FIELDS:
            assert np.float32(values[name]) == np.float32(getattr(header, name))
        elif name not in ("magic", "reserved"):
            assert values[name] == str(getattr(header, name))
    assert (values["magic"], values["reserved"], values["derived.q_dim"]) == ("MLB1", "0", str(header.q_dim))
    assert values.get("flags") == (" ".join(map(str, flags)) if flags else None)
    spans = {}
    for span in iter_spans(header, flags):
        spans.setdefault(span.name, []).append(span)
    for spec in tensor_specs(header, flags):
        kind, shape, _, offset, _, sizes = values[spec.name].split()
        assert (kind, shape) == (spec.kind, "x".join(map(str, spec.shape)))
        assert int(offset) == spans[spec.name][0].offset
        assert [int(size) for size in sizes.split("+")] == [span.size for span in spans[spec.name]]


def test_inspect_prints_short_floats_and_hashes(tiny_file, capsys, tmp_path: Path):
    lines = run(capsys, "inspect", "--hash", tiny_file("llama"))[1]
    assert "norm_eps 1e-05" in lines
    first = next(line for line in lines if line.startswith("tok_emb "))
    data = bytearray(tiny_file("llama").read_bytes())
    data[256] ^= 1
    (tmp_path / "b.mlb").write_bytes(data)
    changed = [line for line in run(capsys, "inspect", "--hash", tmp_path / "b.mlb")[1] if line not in lines]
    assert len(changed) == 1
    assert changed[0].split()[:-1] == first.split()[:-1]
    assert len(changed[0].split()[-1]) == 12


def test_inspect_shows_the_header_of_a_refused_file(tmp_path: Path, capsys):
    (tmp_path / "a.mlb").write_bytes(replace(SMALL, act=7, reserved=b"\x05" + bytes(95)).pack())
    status, lines, errors = run(capsys, "inspect", tmp_path / "a.mlb")
    assert status == 1
    assert "act 7" in lines
    assert "reserved 05" + "00" * 95 in lines
    assert errors == [f"{tmp_path / 'a.mlb'}: ML_E_FORMAT: act 7 at offset 104: must be 0 (SiLU) or 1 (GELU)"]


def test_verify(tiny_file, tmp_path: Path, capsys):
    good = tiny_file("untied")
    data = bytearray(good.read_bytes())
    model = read_model(good)
    last = model.spans()[-1]
    cut, odd, bad = (tmp_path / name for name in ("cut.mlb", "odd.mlb", "bad.mlb"))
    cut.write_bytes(data[: last.offset + last.size])
    data[last.offset + last.size] = 1
    norm = model.spans_of("final_norm")[0]
    data[norm.offset : norm.offset + 4] = struct.pack("<f", float("nan"))
    odd.write_bytes(data + b"more")
    data[256] = 0x80
    bad.write_bytes(data)
    assert run(capsys, "verify", good) == (0, [f"{good}: ok"], [])
    notes = run(capsys, "verify", cut)[1]
    assert notes == [f"{cut}: ok", f"{cut}: note: 40 bytes of padding after the last array are missing"]
    status, lines, errors = run(capsys, "verify", odd)
    assert (status, errors) == (0, [])
    assert [line.split("note: ")[1] for line in lines[1:]] == [
        "4 trailing bytes",
        "1 non-zero bytes of padding",
        "1 non-finite weights and scales",
    ]
    status, lines, errors = run(capsys, "verify", bad, good)  # the second file is looked at all the same
    assert status == 1
    assert lines == [f"{good}: ok"]
    assert errors == [
        f"{bad}: ML_E_FORMAT: tok_emb row 0, column 0 at offset 256: quant -128 is not allowed",
    ]
    assert E_FORMAT in errors[0]


def test_diff_of_equal_files(tiny_file, capsys):
    for feature in ("llama", "everything"):
        assert run(capsys, "diff", tiny_file(feature), tiny_file(feature)) == (0, [], [])


def test_diff_names_what_differs(tiny_file, tmp_path: Path, capsys):
    header, flags, provide = make_tiny("nope")

    def other(spec) -> np.ndarray:
        weights = provide(spec)
        if spec.name == "layers.1.ffn_norm":
            weights[7] += 0.5
        return weights

    path = tmp_path / "b.mlb"
    write_model(path, replace(header, norm_eps=0.5), bytes([0, 4, 4, 5]), other)
    status, lines, errors = run(capsys, "diff", tiny_file("nope"), path)
    assert (status, errors) == (1, [])
    assert lines[:2] == ["norm_eps: 1e-05 and 0.5", "layer_flags[2]: 0 and 4"]
    assert len(lines) == 3
    assert lines[2].startswith("layers.1.ffn_norm: max abs difference 0.5 at [7]: ")


def test_diff_of_other_kinds_and_shapes(tiny_file, tmp_path: Path, capsys):
    lines = run(capsys, "diff", tiny_file("q4"), tiny_file("mask_w2"))[1]
    assert lines[0] == "q8_mask: 0 and 64"
    assert [line.split(":")[0] for line in lines[1:]] == ["layers.0.w2", "layers.1.w2"]
    assert "q4_0 and q8_0, max abs difference" in lines[1]
    lines = run(capsys, "diff", tiny_file("llama"), tiny_file("head_dim"), "--limit", "2")[1]
    assert "n_heads: 4 and 6" in lines
    assert "layers.0.wq: shape (64, 64) and (96, 64)" in lines
    assert lines[-1] == "... and 2 more tensors"  # of wq and wo of both layers
    assert "wcls: only in the second file" in run(capsys, "diff", tiny_file("llama"), tiny_file("untied"))[1]
    assert "wcls: only in the first file" in run(capsys, "diff", tiny_file("untied"), tiny_file("llama"))[1]


def test_diff_of_equal_values_stored_differently(tmp_path: Path, capsys):
    zero = Quantized(np.zeros((32, 32), np.int8), np.zeros((32, 1), np.float32), "q8_0")
    other = Quantized(zero.q, zero.d + 1, "q8_0")
    paths = [tmp_path / "a.mlb", tmp_path / "b.mlb"]
    for path, value in zip(paths, (zero, other), strict=True):
        write_model(path, SMALL, None, lambda s, v=value: v if s.name == "layers.0.wq" else np.ones(s.shape))
    assert run(capsys, "diff", *paths) == (1, ["layers.0.wq: same values, stored differently"], [])


def test_mistakes_are_one_line(tmp_path: Path, tiny_file, capsys):
    missing, good, out = tmp_path / "missing.mlb", tiny_file("llama"), tmp_path / "no" / "a.mlb"
    for status, text, arguments in (
        (1, "ML_E_IO", ["inspect", missing]),
        (1, "ML_E_IO", ["verify", missing]),
        (1, "ML_E_IO", ["verify", tmp_path]),
        (2, "ML_E_IO", ["diff", good, missing]),
        (2, "ML_E_IO", ["diff", missing, good]),
        (2, "unknown feature spam", ["tiny", "spam", "-o", tmp_path / "a.mlb"]),
        (1, f"{out}: No such file", ["tiny", "llama", "-o", out]),
        (1, f"{tmp_path}: Is a directory", ["tiny", "llama", "-o", tmp_path]),
    ):
        got, lines, errors = run(capsys, *arguments)
        assert (got, lines, len(errors)) == (status, [], 1), arguments
        assert text in errors[0]
    for arguments in ([], ["tiny"], ["tiny", "llama"], ["tiny", "llama", "-o", "a", "--seed", "-1"], ["eat"]):
        assert run(capsys, *arguments)[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_as_a_program(root: Path, tmp_path: Path):
    """The command of the documents, from another folder."""
    program = [sys.executable, root / "tools" / "mlb.py"]
    made = subprocess.run([*program, "tiny", "q4", "-o", "a.mlb"], cwd=tmp_path, capture_output=True, text=True)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    verified = subprocess.run([*program, "verify", "a.mlb"], cwd=tmp_path, capture_output=True, text=True)
    assert (verified.returncode, verified.stdout) == (0, "a.mlb: ok\n")
    for command in ([], ["inspect"], ["verify"], ["diff"], ["tiny"]):
        shown = subprocess.run([*program, *command, "--help"], capture_output=True, text=True)
        assert shown.returncode == 0
        assert shown.stdout.startswith("usage: mlb.py")
    listed = subprocess.run([*program, "tiny", "--list"], capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == len(tiny.FEATURES)
    piped = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" "$1" inspect a.mlb | head -n 1', *program],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, "magic MLB1\n", "")
