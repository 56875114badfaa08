"""Fixtures of this folder."""

from pathlib import Path

import pytest
from command_line import Program


@pytest.fixture(scope="session")
def run(ml_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The command-line program, with tiny models at hand."""
    return Program(ml_run, tmp_path_factory.mktemp("models"))
