"""Runs ml_run, the engine under test, on one model and prompt."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mlb import read_model

from oracle.importance import Importance, read_importance

TIMEOUT = 120  # seconds; a tiny model takes far less than one


@dataclass
class Engine:
    """An ml_run program."""

    program: Path

    def logits(self, model: Path, tokens: Sequence[int], *options: str) -> np.ndarray:
        """The logits at every position, (positions, vocab): float32, or float64 with "--exact" among the options."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "logits.npy"
            self._run(model, tokens, "--logits", out, *options)
            return np.load(out)

    def importance(self, model: Path, tokens: Sequence[int], *options: str) -> Importance:
        """The sums of squares that ml_run --imatrix writes."""
        layer_flags = read_model(model).layer_flags
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "sums.mli"
            self._run(model, tokens, "--imatrix", out, *options)
            return read_importance(out, layer_flags)

    def isas(self) -> list[str]:
        """The kernels that this build has and this machine can run."""
        listed = subprocess.run([self.program, "--isa", "list"], capture_output=True, text=True, check=True).stdout
        return listed.split()

    def _run(self, model: Path, tokens: Sequence[int], *options: str | Path) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".ids") as ids:
            ids.write(" ".join(map(str, tokens)))
            ids.flush()
            command = [self.program, "-m", model, "--ids", ids.name, *options]
            result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if result.returncode != 0:
            words = " ".join(map(str, command))
            raise AssertionError(f"{words}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
