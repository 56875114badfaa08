"""The comparison of a TinyLoop model with plain ones: its counts, the shapes that it finds, and a run of it."""

import dataclasses
from pathlib import Path

import compare_loop
import mlb
import pytest
import tinyloop
from compare_loop import Shape, llama_counts, loop_counts, nearest, write_llama
from tinyloop_cli import TINY

BUNDLED = Path(__file__).resolve().parents[2] / "examples" / "models" / "stories-loop" / "model.tinyloop"
STORIES = tinyloop.read_model(BUNDLED).header


@pytest.mark.parametrize("header", [TINY, STORIES, dataclasses.replace(TINY, embed_factor_dim=0)])
def test_parameters_are_those_of_the_tensors(header):
    weights = tinyloop.random_weights(header)
    assert loop_counts(header, 1)[0] == sum(array.size for array in weights.values())


def test_products_grow_with_loops_by_one_block():
    products = [loop_counts(STORIES, loops)[1] for loops in (1, 2, 5)]
    block = 4 * STORIES.dim**2 + 3 * STORIES.dim * STORIES.ffn_dim
    assert products[1] - products[0] == block
    assert products[2] - products[0] == 4 * block


def test_llamas_parameters_are_those_of_its_file(tmp_path):
    shape = Shape(3, 64)
    write_llama(tmp_path / "model.mlb", TINY, shape)
    model = mlb.read_model(tmp_path / "model.mlb")
    assert (model.header.n_layers, model.header.hidden_dim) == shape
    assert llama_counts(TINY, shape)[0] == sum(spec.rows * spec.cols for spec in model.tensors())


@pytest.mark.parametrize("loops", [1, 4, 8])
@pytest.mark.parametrize("which", [0, 1])
def test_peers_are_near(loops, which):
    wanted = loop_counts(STORIES, loops)[which]
    shape = nearest(STORIES, wanted, lambda shape: llama_counts(STORIES, shape)[which])
    assert llama_counts(STORIES, shape)[which] == pytest.approx(wanted, rel=0.03)


def test_command_line(capsys, tmp_path, ml_run):
    model = tmp_path / "tiny.tinyloop"
    tinyloop.write_weights(model, TINY, tinyloop.random_weights(TINY))
    common = ["--ml-run", str(ml_run), "--out", str(tmp_path / "out"), "--rounds", "1"]
    assert compare_loop.main([str(model), *common, "--loops", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].startswith("| looped, loops: 2 |")
    assert len(rows) == 5
    assert all(row.count("|") == 9 for row in rows)
    assert compare_loop.main([str(tmp_path / "none.tinyloop"), *common]) == 1
    assert "none.tinyloop" in capsys.readouterr().err
    assert compare_loop.main([str(model), *common, "--isa", "none"]) == 1
    assert "none" in capsys.readouterr().err
    for wrong in (["--rounds", "0"], ["--loops", "65"]):
        with pytest.raises(SystemExit):
            compare_loop.main([str(model), *wrong])
