#!/usr/bin/env python3
"""How fast texts become ids, by one thread of ml_run, for the published tokenizers. As a program, prints a table:

    python3 tests/ids/encode_speed.py              all that `make tokenizers` has fetched
    python3 tests/ids/encode_speed.py qwen3 --text novel.txt

    MB/s          of English prose (Python's manual, repeated), reading the file and printing the ids included
    80k, 160k     seconds for so many times the letter a: one unbroken run, for which a careless merge takes hours

What opening the tokenizer takes is measured on an empty text and taken off. The best of five; wants a quiet machine.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKENIZERS = ROOT / "build" / "tokenizers"
PROGRAM = ROOT / "build" / "native" / "ml_run"
REPETITIONS = 5
PROSE_BYTES = 10_000_000
RUNS = (80_000, 160_000)


def prose() -> str:
    manual = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    return manual * (PROSE_BYTES // len(manual) + 1)


def seconds(tokenizer: Path, text: str, folder: Path) -> float:
    """Of the whole program."""
    file = folder / "text.txt"
    file.write_text(text, encoding="utf-8")
    command = [PROGRAM, "--tokenizer", tokenizer, "--tokenize", file, "--quiet"]

    def once() -> float:
        with (folder / "ids.txt").open("w") as ids:
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=ids)
            return time.perf_counter() - start

    return min(once() for _ in range(REPETITIONS))


def measure(tokenizer: Path, text: str, folder: Path) -> list[float]:
    """MB/s of the text, and seconds for each of RUNS."""
    opening = seconds(tokenizer, "", folder)
    net: Callable[[str], float] = lambda text: seconds(tokenizer, text, folder) - opening  # noqa: E731
    return [len(text.encode()) / 1e6 / net(text), *(net("a" * count) for count in RUNS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help="folders of build/tokenizers; default: all")
    parser.add_argument("--text", type=Path, metavar="FILE", help="UTF-8, in place of Python's manual")
    options = parser.parse_args()
    names = options.names or sorted(path.parent.name for path in TOKENIZERS.glob("*/model.mlt"))
    if not names:
        parser.error("no tokenizers: make tokenizers")
    text = options.text.read_text(encoding="utf-8") if options.text else prose()
    print(f"{'tokenizer':<12}{'MB/s':>8}{'80k':>10}{'160k':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            speed, short, long = measure(TOKENIZERS / name / "model.mlt", text, Path(folder))
            print(f"{name:<12}{speed:8.1f}{short:8.4f} s{long:8.4f} s{long / short:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
