"""Fixtures for every folder below tests/. tools/ is on the import path by pytest.ini."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def ml_run() -> Path:
    """The command-line program, of the build that ML_BUILD names (native, asan or m32; tests/run.py sets it)."""
    program = ROOT / "build" / os.environ.get("ML_BUILD", "native") / "ml_run"
    if not program.exists():
        pytest.fail(f"{program.relative_to(ROOT)} is missing: run `make {program.relative_to(ROOT)}` first")
    return program
