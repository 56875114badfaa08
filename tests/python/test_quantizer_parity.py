"""The engine's activation quantizer against the writer's Q8_0, bit for bit: one rule of the format document, two
implementations, a million blocks."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from quant import quantize_q8_0

BLOCK = 32
RECORD = np.dtype([("finite", "u1"), ("d", "<f4"), ("start", "<i4"), ("q", "i1", BLOCK)])


@pytest.fixture(scope="module")
def driver(root: Path) -> Path:
    program = root / "build" / os.environ.get("ML_BUILD", "native") / "quantize_driver"
    if not program.exists():
        pytest.fail(f"{program.relative_to(root)} is missing: run `make {program.relative_to(root)}` first")
    return program


def kernel_names(ml_run: Path) -> list[str]:
    return subprocess.run([ml_run, "--isa", "list"], capture_output=True, text=True, check=True).stdout.split()


def ordinary_blocks(rng: np.random.Generator, n: int) -> np.ndarray:
    """Values of many sizes, a scale of its own for every block."""
    scales = 10.0 ** rng.uniform(-20, 20, (n, 1))
    return (rng.standard_normal((n, BLOCK)) * scales).astype(np.float32)


def extreme_blocks(rng: np.random.Generator, n: int) -> np.ndarray:
    """Zeros of both signs, subnormals, the largest floats, values around the 1e-30 bound, and ties."""
    special = np.array(
        [0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 1e-30, 9.9999994e-31, 1.0000001e-30, 3.4028235e38, -3.4028235e38]
        + [127, 0.5, 1.5, 2.5, -0.5, -2.5, 63.5, 126.5, -126.5, 126.49999, 1, -1],
        dtype=np.float32,
    )
    blocks = rng.choice(special, (n, BLOCK))
    blocks[: n // 2] = np.where(np.abs(blocks[: n // 2]) > 127, np.float32(127), blocks[: n // 2])
    return blocks


def by_engine(driver: Path, name: str, blocks: np.ndarray) -> np.ndarray:
    out = subprocess.run([driver, name], input=blocks.tobytes(), capture_output=True, check=True).stdout
    records = np.frombuffer(out, RECORD)
    assert len(records) == len(blocks)
    return records


def differences(records: np.ndarray, blocks: np.ndarray) -> int:
    """Blocks in which anything differs from what the writer makes of them."""
    written = quantize_q8_0(blocks)
    q = written.q.reshape(-1, BLOCK)
    same = (records["q"] == q).all(axis=1)
    same &= records["d"].view("u4") == written.d.reshape(-1).astype("<f4").view("u4")
    same &= records["start"] == -8 * q.sum(axis=1, dtype=np.int32)
    same &= records["finite"] == 1
    return int((~same).sum())


@pytest.mark.slow
def test_a_million_blocks_are_equal(driver: Path, ml_run: Path) -> None:
    rng = np.random.default_rng(20)
    n = 1_000_000 if os.environ.get("ML_BUILD", "native") == "native" else 20_000
    blocks = np.concatenate([ordinary_blocks(rng, n), extreme_blocks(rng, n // 4)])
    for name in kernel_names(ml_run):
        assert differences(by_engine(driver, name, blocks), blocks) == 0, name


def test_one_wrong_bit_is_found(driver: Path) -> None:
    blocks = ordinary_blocks(np.random.default_rng(3), 1000)
    records = by_engine(driver, "scalar", blocks).copy()
    assert differences(records, blocks) == 0
    records["q"][500, 7] ^= 1
    assert differences(records, blocks) == 1
    records["d"][3] = np.nextafter(records["d"][3], np.float32(np.inf))
    assert differences(records, blocks) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_reported(driver: Path, ml_run: Path, value: float) -> None:
    blocks = np.ones((BLOCK, BLOCK), dtype=np.float32)
    np.fill_diagonal(blocks, value)  # at every place once
    for name in kernel_names(ml_run):
        assert not by_engine(driver, name, blocks)["finite"].any(), name
