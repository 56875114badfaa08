"""Fixtures of the token id tests: the driver program and the published tokenizers."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tokenizer_sources
from driver import OpenDriver


@pytest.fixture(scope="session")
def ids_driver(root: Path) -> Path:
    """The program, of the build that ML_BUILD names (native, asan or m32)."""
    program = root / "build" / os.environ.get("ML_BUILD", "native") / "ids_driver"
    if not program.exists():
        pytest.fail(f"{program.relative_to(root)} is missing: run `make {program.relative_to(root)}` first")
    return program


@pytest.fixture(scope="session")
def published(ids_driver: Path) -> Iterator[Callable[[str], OpenDriver]]:
    """published("qwen3"): the driver on a fetched tokenizer. Skips the test when it was not fetched."""
    drivers: dict[str, OpenDriver] = {}

    def find(name: str) -> OpenDriver:
        folder = tokenizer_sources.fetched().get(name)
        if folder is None:
            pytest.skip("published tokenizers are not fetched (`make ids` or tools/tokenizer_sources.py fetch)")
        return drivers.setdefault(name, OpenDriver(ids_driver, folder / "model.mlt"))

    yield find
    for driver in drivers.values():
        driver.close()
