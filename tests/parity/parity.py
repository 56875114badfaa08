"""The same bits from every build: traces of all models, from every program, kernel table and way of running.

    tests/parity/parity.py                 everything (make parity)
    tests/parity/parity.py --slice         a few models on the native build, for every edit
    tests/parity/parity.py --only llama    models by name, may be repeated
    tests/parity/parity.py --list          models, runners and their kernel tables

`ml_run --trace` hashes every stage at every position (docs/NUMERICS.md). The hashes of the native build's scalar
kernels, weights packed, one thread, the whole prompt at once, are what all others must equal. A difference is a failure
that names the first stage in which it shows: the earliest position, then the earliest layer, then the earliest stage.

Models are those of every feature in tools/tiny.py, the goldens, the trained ones of examples/models, and the real ones
that tools/fetch_models.py has left in build/models. One test is one model on one kernel table of one runner, in all
ways. The last line is "N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from mlb import read_model  # noqa: E402
from tiny import FEATURES, write_tiny  # noqa: E402
from tinyloop import read_model as read_tinyloop  # noqa: E402

STAGES = ["embed", "block_in", "q", "k", "v", "conv", "mixed", "block_out", "ffn_in", "ffn_mid", "ffn_out"]
STAGES += ["layer", "final", "logits"]

SHOWN = 40  # differences that are told
TINY_IDS = 24  # three windows of tiny.py, three of the widest tiles of tokens
REAL_IDS = 4
# The tiny models that go all ways; the others, with a feature each, and the goldens go fewer.
SHAPES = ("llama", "q4", "odd_heads", "linear", "linear_only", "qwen2", "qwen3", "qwen35", "smollm3", "gemma2")
SHAPES += ("gemma3", "everything")
SLICE = ("odd_heads", "qwen35", "gemma2", "everything")


class Server:
    """A process of a runner that takes one run after another: each a line of JSON, its options, answered by a line."""

    def __init__(self, command: Sequence[str]):
        self.command = command
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([*command, "--serve"], cwd=ROOT, text=True, **pipes)

    def call(self, arguments: Sequence[str]) -> str:
        """Standard output of a run. RuntimeError with what the program said if it fails or the server dies."""
        try:
            print(json.dumps(arguments), file=self.process.stdin, flush=True)
            answer = json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            said = self.process.communicate()[1]
            raise RuntimeError(f"{' '.join([*self.command, *arguments])}: it died\n{said.strip()}") from None
        if answer["code"] != 0:
            raise RuntimeError(f"{' '.join([*self.command, *arguments])}: exit code {answer['code']}\n{answer['err']}")
        return answer["out"]

    def stop(self) -> None:
        self.process.communicate()


@dataclass(frozen=True)
class Runner:
    """A program that takes ml_run's arguments and prints ml_run's trace. `command` begins with what starts it."""

    name: str
    command: tuple[str, ...]
    slow: bool = False  # goes fewer ways
    exact: bool = True  # knows --exact
    most_bytes: int | None = None  # leaves larger models out
    wasm: bool = False  # a module, which Node may lack instructions for; starts slowly, hence serves
    idle: list[Server] = field(default_factory=list, compare=False)

    def why_missing(self) -> str | None:
        """Why it cannot run here, or None."""
        for word in self.command:
            if "/" in word and not (ROOT / word).exists():
                return f"{word} is not built"
        if self.wasm:
            command = [*self.command, "--isa", "list"]
            said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            return said.stderr.strip() if said.returncode == CANNOT_RUN else None
        return None if shutil.which(self.command[0], path=None) or "/" in self.command[0] else f"no {self.command[0]}"

    def leaves_out(self, model: Model) -> bool:
        return self.most_bytes is not None and model.path.stat().st_size > self.most_bytes

    def call(self, arguments: Iterable[str | Path]) -> str:
        """Standard output. RuntimeError with what the program said if it fails. Threads may call at the same time."""
        words = [*map(str, arguments)]
        if self.wasm:
            server = self.idle.pop() if self.idle else Server(self.command)
            try:
                return server.call(words)
            finally:
                if server.process.poll() is None:  # a run that failed is no reason to start another
                    self.idle.append(server)
        result = subprocess.run(
            [*self.command, *words], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if result.returncode != 0:
            command = " ".join([*self.command, *words])
            raise RuntimeError(f"{command}: exit code {result.returncode}\n{result.stderr.strip()}")
        return result.stdout

    def stop(self) -> None:
        """Ends the processes that serve."""
        while self.idle:
            self.idle.pop().stop()

    @cache  # noqa: B019 - a handful of runners, alive as long as the program
    def tables(self) -> tuple[str, ...]:
        """Kernel tables that it can run here, best first, and perhaps `exact`."""
        return (*self.call(["--isa", "list"]).split(), *(["exact"] if self.exact else []))


NODE = next((path for path in ("tests/node_modules/.bin/node",) if (ROOT / path).exists()), "node")
WASMS = ("simd128", "simd128-threads", "relaxed", "relaxed-threads")
EMULATED_BYTES = 200 << 20  # a larger model takes the emulator minutes
CANNOT_RUN = 3  # exit code of wasm_run.mjs
RUNNERS = (
    Runner("native", ("build/native/ml_run",)),
    Runner("arm64", ("qemu-aarch64", "build/arm64/ml_run"), slow=True, most_bytes=EMULATED_BYTES),
    *(
        Runner(name, (NODE, "tests/js/wasm_run.mjs", f"build/wasm/{name}.wasm"), slow=True, exact=False, wasm=True)
        for name in WASMS
    ),
)


@dataclass(frozen=True)
class Model:
    name: str
    path: Path
    n_ids: int
    real: bool = False

    def ids(self) -> str:
        """Made up from the name, the same in every run."""
        rng = random.Random(self.name)
        if self.path.suffix == ".tinyloop":
            vocab = read_tinyloop(self.path).header.vocab_size
        else:
            vocab = read_model(self.path).header.vocab
        return ",".join(str(rng.randrange(vocab)) for _ in range(self.n_ids))


def find_models(folder: Path) -> list[Model]:
    """All models; tiny ones are written to `folder`."""
    models = []
    for feature in FEATURES:
        path = folder / f"{feature}.mlb"
        write_tiny(path, feature)
        models.append(Model(feature, path, TINY_IDS))
    for path in sorted((ROOT / "tests/golden").glob("*.mlb")):
        models.append(Model(f"golden/{path.stem}", path, TINY_IDS))
    for path in sorted((ROOT / "tests/golden/tinyloop").glob("*.tinyloop")):
        models.append(Model(f"tinyloop/{path.stem}", path, TINY_IDS))
    for path in sorted((ROOT / "examples/models").glob("*/model.*")):
        if path.suffix in (".mlb", ".tinyloop"):
            models.append(Model(f"example/{path.parent.name}", path, TINY_IDS))
    for path in sorted((ROOT / "build/models").glob("*/model.mlb")):
        models.append(Model(f"real/{path.parent.name}", path, REAL_IDS, real=True))
    return models


# ---------------------------------------------------------------- ways of running

# Packed or as in the file, threads, the whole prompt at once or token by token.
ALL_WAYS = tuple(
    (*layout, "--threads", threads, "--batch", batch)
    for layout, threads, batch in itertools.product(((), ("--mmap",)), "123", ("64", "1"))
)
# Each choice beside each other one at least once.
FEW_WAYS = (
    ("--threads", "1", "--batch", "64"),
    ("--mmap", "--threads", "2", "--batch", "1"),
    ("--threads", "3", "--batch", "1"),
    ("--mmap", "--threads", "3", "--batch", "64"),
)
# Keys and values as bytes: other bits, and again the same for all.
KV_WAYS = (
    ("--kv", "q8", "--threads", "2", "--batch", "64"),
    ("--kv", "q8", "--threads", "3", "--batch", "1"),
)
ONE_WAY = (("--mmap", "--threads", "2", "--batch", "64"),)


def ways_of(model: Model, runner: Runner, table: str, slice_only: bool) -> Sequence[tuple[str, ...]]:
    """All of them where a run takes milliseconds, one where it takes seconds."""
    plain = table in ("scalar", "exact")  # portable C: little can differ between the ways that does not elsewhere
    if (runner.slow and (plain or model.real)) or (model.real and table == "exact"):
        return (*ONE_WAY, *KV_WAYS[:1])
    all_ways = model.name in SHAPES and not (slice_only or runner.slow or table == "exact")
    return (*(ALL_WAYS if all_ways else FEW_WAYS), *KV_WAYS)


def cache_of(way: tuple[str, ...]) -> tuple[str, ...]:
    """What of a way changes results: how keys and values are kept."""
    return way[:2] if way[:1] == ("--kv",) else ()


# ---------------------------------------------------------------- traces

OUTSIDE = 1 << 20  # comes after every layer; the embedding, layer -1, before


def place_of(line: str) -> tuple[int, int, int, str]:
    """Sorts a trace line by position, then in the order in which a pass computes."""
    position, layer, stage, _, _ = line.split()
    number = STAGES.index(stage) if stage in STAGES else len(STAGES)
    return int(position), OUTSIDE if stage in ("final", "logits") else int(layer), number, stage


def first_difference(expected: list[str], actual: list[str]) -> str | None:
    """Where two sorted traces part, in words; None if they are the same."""
    if expected == actual:
        return None
    wanted, found = ({place_of(line): line.split()[3:] for line in lines} for lines in (expected, actual))
    for place in sorted(wanted | found):
        if wanted.get(place) != found.get(place):
            position, layer, _, stage = place
            where = f"position {position}, {f'layer {layer}, ' if 0 <= layer < OUTSIDE else ''}stage {stage}"
            return (
                f"{where}: {' '.join(found.get(place, ['missing']))}, scalar's {' '.join(wanted.get(place, ['none']))}"
            )
    return f"{len(actual)} lines, not {len(expected)}: some come twice"


def trace(runner: Runner, model: Model, ids: str, table: str, way: Sequence[str]) -> list[str]:
    """The lines, sorted. RuntimeError if there are none, or others."""
    kernels = ["--exact"] if table == "exact" else ["--isa", table]
    lines = runner.call(["--model", model.path, "--ids", ids, "--trace", *kernels, *way]).splitlines()
    if not lines:
        raise RuntimeError("an empty trace")
    if other := [line for line in lines if len(line.split()) != 5]:
        raise RuntimeError(f"not a line of a trace: {other[0]!r}")
    return sorted(lines)


# ---------------------------------------------------------------- the matrix


@dataclass
class Row:
    """What was compared on one kernel table of one runner."""

    models: int = 0
    failed: int = 0
    runs: int = 0
    hashes: int = 0


@dataclass
class Report:
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Passed, failed, skipped."""
        failed = sum(row.failed for row in self.rows.values())
        passed = sum(row.models for row in self.rows.values()) - failed
        return passed, failed if passed + failed else failed + 1, len(self.skipped)

    def print(self) -> None:
        for text in self.differences[:SHOWN]:
            print(f"DIFFERS  {text}")
        if len(self.differences) > SHOWN:
            print(f"and {len(self.differences) - SHOWN} more that differ")
        print(f"{'runner':<18}{'kernels':<16}{'models':>8}{'differ':>8}{'runs':>8}{'hashes':>10}")
        for (runner, table), row in self.rows.items():
            print(f"{runner:<18}{table:<16}{row.models:>8}{row.failed:>8}{row.runs:>8}{row.hashes:>10}")
        for reason in self.skipped:
            print(f"{reason.partition(' ')[0]}: skipped: {reason}")
        if not self.rows:
            print("nothing was compared")
        print("{} passed, {} failed, {} skipped".format(*self.counts))


def compare_model(model: Model, runners: Sequence[Runner], slice_only: bool, pool: ThreadPoolExecutor, report: Report):
    """All runs of one model, against the first runner's scalar (or exact) kernels in the first way."""
    ids = model.ids()

    def run(runner: Runner, table: str, way: Sequence[str]) -> list[str] | RuntimeError:
        try:
            return trace(runner, model, ids, table, way)
        except RuntimeError as error:
            return error

    references = {
        (table, cache): pool.submit(run, runners[0], table, (*cache, *ALL_WAYS[0]))
        for table in ("scalar", "exact")
        for cache in {cache_of(way) for way in (*ALL_WAYS, *KV_WAYS)}
    }
    runs = {
        (runner, table): {
            way: pool.submit(run, runner, table, way) for way in ways_of(model, runner, table, slice_only)
        }
        for runner in runners
        if not runner.leaves_out(model)
        for table in runner.tables()
    }
    for (runner, table), ways in runs.items():
        row = report.rows.setdefault((runner.name, table), Row())
        differs = False
        for way, future in ways.items():
            expected = references["exact" if table == "exact" else "scalar", cache_of(way)].result()
            actual = future.result()
            row.runs += 1
            row.hashes += len(actual) if isinstance(actual, list) else 0
            if what := verdict(expected, actual):
                report.differences.append(f"{model.name} on {runner.name} {table} {' '.join(way)}: {what}")
                differs = True
        row.models += 1
        row.failed += differs


def verdict(expected: list[str] | RuntimeError, actual: list[str] | RuntimeError) -> str | None:
    """What is wrong with a run, or None."""
    if isinstance(actual, RuntimeError):
        return str(actual)
    if isinstance(expected, RuntimeError):
        return f"nothing to compare with: {expected}"
    return first_difference(expected, actual)


def compare_all(models: Iterable[Model], runners: Sequence[Runner], slice_only: bool = False) -> Report:
    report = Report()
    missing = {runner: why for runner in runners if (why := runner.why_missing())}
    report.skipped = [f"{runner.name} {why}" for runner, why in missing.items()]
    present = [runner for runner in runners if runner not in missing]
    if runners[0] in missing:
        return report
    models = list(models)
    report.skipped += [
        f"{runner.name} {model.name} is too large for an emulator"
        for runner in present
        for model in models
        if runner.leaves_out(model)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for model in models:
            compare_model(model, present, slice_only, pool, report)
    for runner in present:
        runner.stop()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slice", action="store_true", help=f"only {', '.join(SLICE)}, on the native build")
    parser.add_argument("--only", action="append", metavar="NAME", help="a model of --list")
    parser.add_argument("--list", action="store_true", help="models, runners and their kernel tables")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = find_models(Path(folder))
        if arguments.list:
            for runner in RUNNERS:
                print(f"runner {runner.name}: {runner.why_missing() or ' '.join(runner.tables())}")
            print(*(f"model {model.name}: {model.n_ids} ids" for model in models), sep="\n")
            return 0
        wanted = arguments.only or (SLICE if arguments.slice else [model.name for model in models])
        if unknown := set(wanted) - {model.name for model in models}:
            parser.error(f"no model is called {', '.join(sorted(unknown))}: --list shows the names")
        chosen = [model for model in models if model.name in wanted]
        report = compare_all(chosen, RUNNERS[:1] if arguments.slice else RUNNERS, arguments.slice)
    report.print()
    return 1 if report.counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
