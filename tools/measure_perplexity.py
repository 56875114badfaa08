#!/usr/bin/env python3
"""Converts a model in several ways and measures what each costs: size and perplexity, as ml_run computes it.

    python3 tools/measure_perplexity.py build/models/smollm2-135m.gguf
    python3 tools/measure_perplexity.py SRC --variants q8 q4-fit q4-imatrix --text novel.txt --tokens 16384

Perplexity is exp of the mean negative log-likelihood of a text, in windows of --ctx tokens; only differences between
variants have a meaning, and the text decides how large they are. Without --text it is Python's own manual, which comes
with Python. The importance matrix is measured on another part of the text than the perplexity.

Needs build/native/ml_run (make native) and room for one variant at a time below --folder. Takes minutes.
"""

from __future__ import annotations

import argparse
import json
import pydoc_data.topics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import convert

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "native" / "ml_run"

# Name -> options of convert.py. IMATRIX stands for the file that is measured with the first variant's weights.
IMATRIX = "IMATRIX"
VARIANTS = {
    "q8": ["--wtype", "q8_0"],
    "q8-f32-scales": ["--wtype", "q8_0", "--scales", "f32"],
    "q4-fit": ["--wtype", "q4_0", "--q4-rule", "fit", "--mixed", "none"],
    "q4-round": ["--wtype", "q4_0", "--q4-rule", "round", "--mixed", "none"],
    "q4-imatrix": ["--wtype", "q4_0", "--imatrix", IMATRIX, "--mixed", "none"],
    "q4-emb": ["--wtype", "q4_0", "--q4-rule", "fit", "--mixed", "tok_emb"],
    "q4-wv": ["--wtype", "q4_0", "--q4-rule", "fit", "--mixed", "wv"],
    "q4-wv-w2": ["--wtype", "q4_0", "--q4-rule", "fit", "--mixed", "wv,w2"],
    "q4-emb-wv": ["--wtype", "q4_0", "--q4-rule", "fit", "--mixed", "tok_emb,wv"],
    "q4-emb-round": ["--wtype", "q4_0", "--q4-rule", "round", "--mixed", "tok_emb"],
    "q4-emb-imatrix": ["--wtype", "q4_0", "--imatrix", IMATRIX, "--mixed", "tok_emb"],
}
USUAL = ["q8", "q4-fit", "q4-round", "q4-imatrix", "q4-emb", "q4-emb-wv"]
CHARACTERS_PER_TOKEN = 12  # more than any text needs


class MeasureError(Exception):
    """One line about what could not be measured."""


@dataclass
class Setting:
    """What is the same for all variants."""

    source: Path
    folder: Path
    text: str
    tokens: int
    context: int
    threads: int


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="measure_perplexity.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SRC", type=Path, help="Hugging Face folder or GGUF file, as for convert.py")
    parser.add_argument(
        "--variants", nargs="+", default=USUAL, choices=VARIANTS, metavar="V", help=f"of {', '.join(VARIANTS)}"
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="UTF-8; default: Python's manual")
    parser.add_argument("--tokens", type=int, default=8192, metavar="N", help="to measure on; default 8192")
    parser.add_argument("--ctx", type=int, default=512, metavar="N", help="window; default 512")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="default 2")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="for the converted models; default build")
    options = parser.parse_args()
    if not PROGRAM.exists():
        parser.error(f"{PROGRAM} is not there: `make native` builds it")
    text = options.text.read_text(encoding="utf-8") if options.text else python_manual()
    try:
        with tempfile.TemporaryDirectory(prefix="perplexity-", dir=options.folder) as folder:
            setting = Setting(options.source, Path(folder), text, options.tokens, options.ctx, options.threads)
            measure(setting, options.variants)
    except MeasureError as error:
        print(f"measure_perplexity.py: {error}", file=sys.stderr)
        return 1
    return 0


def python_manual() -> str:
    """The topics of Python's help(), in the order of their names."""
    return "\n\n".join(text for _, text in sorted(pydoc_data.topics.topics.items()))


def measure(setting: Setting, variants: list[str]) -> None:
    """Prints a row for each variant as it is done."""
    print(f"{'variant':<16} {'megabytes':>10} {'perplexity':>11} {'to first':>9}", flush=True)
    first = None
    for variant in variants:
        package = _converted(setting, variant)
        ids = _ids(setting, package)
        perplexity = _perplexity(setting, package, ids[: setting.tokens])
        first = first or perplexity
        size = (package / "model.mlb").stat().st_size / 1e6
        print(f"{variant:<16} {size:10.1f} {perplexity:11.4f} {100 * (perplexity / first - 1):+8.2f}%", flush=True)
        if not (setting.folder / IMATRIX).exists() and any(IMATRIX in VARIANTS[later] for later in variants):
            _measure_importance(setting, package, ids[setting.tokens :])
        (package / "model.mlb").unlink()


def _converted(setting: Setting, variant: str) -> Path:
    package = setting.folder / variant
    options = [str(setting.folder / IMATRIX) if option == IMATRIX else option for option in VARIANTS[variant]]
    if str(setting.folder / IMATRIX) in options and not (setting.folder / IMATRIX).exists():
        raise MeasureError(f"{variant} cannot be the first variant: importance is measured with another's weights")
    if convert.main([str(setting.source), str(package), "--quiet", *options]) != 0:
        raise MeasureError(f"{setting.source} could not be converted to {variant}")
    return package


def _ids(setting: Setting, package: Path) -> list[str]:
    """Of twice as many tokens as are measured on: the second half is for the importance matrix."""
    file = setting.folder / "text.txt"
    file.write_text(setting.text[: 2 * CHARACTERS_PER_TOKEN * setting.tokens], encoding="utf-8")
    printed = _ml_run("--tokenizer", package / "tokenizer.mlt", "--tokenize", file)
    ids = printed.replace(",", " ").split()[: 2 * setting.tokens]
    if len(ids) < 2 * setting.tokens:
        raise MeasureError(f"the text has {len(ids)} tokens, {2 * setting.tokens} are needed")
    return ids


def _perplexity(setting: Setting, package: Path, ids: list[str]) -> float:
    printed = _ml_run(*_run_options(setting, package, ids), "--perplexity", "--json")
    return json.loads(printed)["perplexity"]


def _measure_importance(setting: Setting, package: Path, ids: list[str]) -> None:
    _ml_run(*_run_options(setting, package, ids), "--imatrix", setting.folder / IMATRIX)


def _run_options(setting: Setting, package: Path, ids: list[str]) -> list[str | Path]:
    file = setting.folder / "text.ids"
    file.write_text(" ".join(ids))
    numbers = ["--ctx", str(setting.context), "--threads", str(setting.threads)]
    return ["-m", package / "model.mlb", "--ids", file, *numbers]


def _ml_run(*options: str | Path) -> str:
    result = subprocess.run([PROGRAM, *options, "--quiet"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise MeasureError(f"ml_run: {result.stderr.strip().splitlines()[0]}")
    return result.stdout


if __name__ == "__main__":
    sys.exit(main())
