"""Runs ml_run and takes its answers apart; for the test_ml_run_* files, which get a Program as the fixture `run`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tiny import write_tiny

IDS = [3, 141, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64]


def listed(ids: list[int]) -> str:
    """Ids as --ids takes them."""
    return ",".join(map(str, ids))


@dataclass(frozen=True)
class Answer:
    """What a run left behind."""

    code: int
    out: str
    err: str

    @property
    def ids(self) -> list[int]:
        """Generated ids; the output must be one line of them and nothing else."""
        assert self.code == 0, self.err
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return [int(word) for word in self.out.split()]

    @property
    def json(self) -> dict[str, Any]:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def status(self) -> str:
        """The status name of a failure with exit code 1. Such a run prints no result, and says what to do."""
        assert self.code == 1, f"exit code {self.code}: {self.err}"
        lines = [line for line in self.err.splitlines() if line.startswith("ml_run: ")]
        assert len(lines) == 1, self.err
        advice = self.err.splitlines()[-1]
        assert advice.startswith("  "), f"no advice: {self.err}"
        return lines[0].split(":")[1].strip()

    def finish(self) -> str:
        """Why generation ended, off the timings."""
        return next(line.split(maxsplit=1)[1] for line in self.err.splitlines() if line.startswith("finish"))


@dataclass(frozen=True)
class Program:
    """ml_run, and a folder of tiny models made as they are asked for."""

    path: Path
    folder: Path

    def __call__(self, *arguments: str | Path | int | float, stdin: bytes = b"") -> Answer:
        run = subprocess.run([self.path, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)
        return Answer(run.returncode, run.stdout.decode(), run.stderr.decode())

    def model(self, feature: str = "llama") -> Path:
        path = self.folder / f"{feature}.mlb"
        if not path.exists():
            write_tiny(path, feature)
        return path

    def logits(self, model: Path, ids: list[int], *options: str | int) -> np.ndarray:
        path = self.folder / "logits.npy"
        answer = self("-m", model, "--ids", listed(ids), "--logits", path, *options)
        assert answer.code == 0, answer.err
        assert answer.out == ""
        return np.load(path)
