"""Which kernels an AArch64 processor is given, by asking emulated ones. Run by the suite code-arm64 alone, by its path,
so that it is not a skipped test of every other run."""

import subprocess
from pathlib import Path

import pytest


def isa_list(ml_run: Path, processor: str) -> list[str]:
    command = ["qemu-aarch64", "-cpu", processor, ml_run, "--isa", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("processor", "names"),
    [
        ("cortex-a53", ["neon", "scalar"]),  # ARMv8.0
        ("cortex-a76", ["neondot", "neon", "scalar"]),  # the first with dot products
        ("max", ["neondot", "neon", "scalar"]),
    ],
)
def test_kernels_of_a_processor(ml_run: Path, processor: str, names: list[str]) -> None:
    assert isa_list(ml_run, processor) == names


def test_dot_products_are_refused_without_their_instructions(ml_run: Path, root: Path) -> None:
    model = root / "tests/golden/llama.mlb"
    command = ["qemu-aarch64", "-cpu", "cortex-a53", ml_run, "-m", model, "--ids", "1,2", "-n", "2"]
    assert subprocess.run(command, capture_output=True).returncode == 0
    refused = subprocess.run([*command, "--isa", "neondot"], capture_output=True, text=True)
    assert refused.returncode == 1
    assert "neondot" in refused.stderr
