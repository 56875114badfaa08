"""TinyLoop models through ml_run: what it refuses and says, what it prints, and how loops are chosen."""

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest
import tinyloop_cli
from test_tinyloop_format import BAD_FIELDS
from tiny import write_tiny
from tinyloop import TinyLoopError, parse_model, random_weights, write_weights
from tinyloop_cli import TINY
from tinyloop_layout import FIELD_OFFSETS

IDS = "1,50,100,7,3,3,9,20"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tinyloop"
    write_weights(path, TINY, random_weights(TINY))
    return path


@pytest.fixture
def run(ml_run: Path):
    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ml_run, *arguments], capture_output=True, text=True, timeout=60)

    return call


@pytest.mark.parametrize(("field", "value"), [case[:2] for case in BAD_FIELDS])
def test_both_readers_refuse_for_the_same_reason(run, model, field, value):
    """The same status, field and offset."""
    data = bytearray(model.read_bytes())
    struct.pack_into("<I", data, FIELD_OFFSETS[field], value)
    model.write_bytes(data)
    with pytest.raises(TinyLoopError) as caught:
        parse_model(bytes(data))
    named, offset = re.match(r"(\w+) \S+ at offset (\d+)", str(caught.value)).groups()
    answer = run("--check", model)
    assert answer.returncode == 1
    if field == "magic":
        assert "known files begin with" in answer.stderr.lower()
        return
    assert answer.stderr.startswith(f"ml_run: {caught.value.status}: ")
    assert f": {named} = " in answer.stderr and f"(offset {offset})" in answer.stderr


def test_check_and_info(run, model):
    assert run("--check", model).stdout == f"{model}: TinyLoop model, good\n"
    info = json.loads(run(model, "--info", "--json", "--loops", "5").stdout)
    assert (info["weight_type"], info["n_layers"], info["n_loops"], info["session_loops"]) == ("INT4", 2, 3, 5)
    assert info["file_bytes"] == model.stat().st_size
    less = json.loads(run(model, "--info", "--json", "--loops", "1").stdout)
    assert less["session_bytes"] < info["session_bytes"]


def test_loops_change_what_is_generated(run, model):
    def generated(*options: str) -> str:
        answer = run(model, "--ids", IDS, "-n", "24", *options)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    assert generated() == generated("--loops", "3")
    assert len({generated("--loops", str(loops)) for loops in (1, 2, 3, 6)}) > 1


def test_loops_are_refused_where_they_mean_nothing(run, model, tmp_path):
    write_tiny(tmp_path / "llama.mlb", "llama")
    answer = run(tmp_path / "llama.mlb", "--ids", "1", "--loops", "2")
    assert answer.returncode == 1
    assert "ML_E_ARG: loops = 2: but no layer of this model is repeated" in answer.stderr
    assert "whole number from 1 to 64" in run(model, "--ids", "1", "--loops", "65").stderr


@pytest.mark.parametrize("mode", ["--perplexity", "--trace", "--bench"])
def test_other_modes_work(run, model, mode):
    options = ["--repeat", "1"] if mode == "--bench" else []
    answer = run("-m", model, "--ids", IDS, mode, *options)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) > 1


def test_bench_counts_the_shared_block_once_per_loop(run, model):
    """In memory a block is its codes, a float for every 32 of them, and its two norms (docs/TINYLOOP.md)."""

    def bench(*options: str) -> dict:
        return json.loads(run(model, "--bench", "--repeat", "1", "--json", "--ctx", "16", *options).stdout)

    found = {loops: bench("--loops", str(loops)) for loops in (1, 2, 5)}
    weights = 4 * TINY.dim**2 + 3 * TINY.dim * TINY.ffn_dim
    block = weights // 2 + weights // 32 * 4 + 2 * TINY.dim * 4
    assert found[1]["bytes_per_id"] == found[1]["weight_bytes"]
    for loops, result in found.items():
        assert result["weight_bytes"] == found[1]["weight_bytes"]
        assert result["bytes_per_id"] == result["weight_bytes"] + (loops - 1) * block
        speed = result["generated_per_second"] * result["bytes_per_id"] / 1e9
        assert result["generated_gigabytes_per_second"] == pytest.approx(speed, abs=0.011)
    assert bench()["bytes_per_id"] == bench("--loops", str(TINY.default_loops))["bytes_per_id"]


def test_verify_passes_and_can_fail(run, model):
    good = run(model, "--verify", "--json")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["least_cosine"] > 0.998
    weights = random_weights(TINY)
    for block in (0, 1):  # one channel drowns the 31 beside it, but nothing reads it
        weights[f"blocks.{block}.ffn_norm"][0] = 1e6
        for name in ("w1", "w3"):
            weights[f"blocks.{block}.{name}"][:, 0] = 0
    write_weights(model, TINY, weights)
    bad = run(model, "--verify", "--json")
    assert bad.returncode == 1
    assert "ML_E_NUMERIC: the logits are not those of exact arithmetic" in bad.stderr


def test_tool_verifies_with_the_engine(model, ml_run, capsys):
    for loops in ([], ["--loops", "1"]):
        assert tinyloop_cli.main(["verify", str(model), "--ml-run", str(ml_run), *loops]) == 0
        assert "exact mode: largest difference" in capsys.readouterr().out
    assert tinyloop_cli.main(["verify", str(model), "--ml-run", str(ml_run), "--loops", "65"]) == 1
