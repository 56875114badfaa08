"""Runs the test suites and closes with one line: N passed, N failed, N skipped.

    tests/run.py check            the suites of every edit (make check)
    tests/run.py all              every suite (make test)
    tests/run.py --only NAME      one suite, may be repeated
    tests/run.py --list           names and sets

Each suite first builds what it needs (`make`), then runs with its output in build/log/NAME.log, as many suites at a
time as there are processors; of a suite that failed the end of the log is printed. A suite that compared nothing has
failed, unless all of it was skipped for a reason that it stated. The exit code is 0 only if nothing failed. Needs
nothing but the standard library.
"""

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

WASMS = ("simd128", "simd128-threads", "relaxed", "relaxed-threads")
ROOT = Path(__file__).resolve().parent.parent
LOGS = Path("build/log")
VENV = "build/venv/bin/python"
VENV_HF = "build/venv-hf/bin/python"
TAIL_LINES = 60
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)

running: set[subprocess.Popen[bytes]] = set()
making = threading.Lock()  # one `make` at a time: two would build the same files


@dataclass
class Outcome:
    """What one suite did. `reasons` tells why tests were skipped, and why the suite as a whole failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def fail(self, reason: str) -> None:
        """Counts a failure of the suite itself (it did not build, crashed, compared nothing)."""
        self.failed += 1
        self.reasons[f"FAILED: {reason}"] += 1


@dataclass(frozen=True)
class Suite:
    """One row of the table. `run` writes to the log that it is given and returns the counts."""

    name: str
    about: str
    sets: tuple[str, ...]
    run: Callable[["Job"], Outcome]
    targets: tuple[str, ...] = ()
    build: str = "native"
    minutes: int = 10


@dataclass
class Job:
    """One run of a suite: where its output goes, and when it must be over."""

    suite: Suite
    log: Path
    deadline: float
    fuzz_seconds: int

    def call(self, command: Sequence[str | Path]) -> int:
        """Runs a command with its output in the log. Returns its exit code, 124 when time was up."""
        environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        environment["ML_BUILD"] = self.suite.build
        with self.log.open("a") as out:
            print("$", *command, file=out, flush=True)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )
            running.add(process)
            try:
                return process.wait(max(1.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                print("out of time", file=out)
                return 124
            finally:
                end(process)
                running.discard(process)

    def make(self, targets: Sequence[str]) -> bool:
        with making:
            return not targets or self.call(["make", f"-j{os.cpu_count()}", *targets]) == 0


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and all that it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def settle(outcome: Outcome, code: int) -> Outcome:
    """Makes a failure of what cannot be a pass: an exit code without a failed test, and a suite that did nothing."""
    if code != 0 and outcome.failed == 0:
        outcome.fail("out of time" if code == 124 else f"exit code {code}")
    if outcome.passed + outcome.failed + outcome.skipped == 0:
        outcome.fail("compared nothing")
    return outcome


def program(*command: str) -> Callable[[Job], Outcome]:
    """A test program of ours, which ends in the closing line and marks skipped tests by ': skipped: REASON'."""

    def run(job: Job) -> Outcome:
        code = job.call(command)
        text = job.log.read_text(errors="replace")
        outcome = Outcome()
        if closing := CLOSING.findall(text):
            outcome.passed, outcome.failed, outcome.skipped = map(int, closing[-1])
        outcome.reasons.update(re.findall(r": skipped: (.*)$", text, re.MULTILINE))
        return settle(outcome, code)

    return run


def pytest(python: str, *arguments: str) -> Callable[[Job], Outcome]:
    """A folder of pytest files, counted from its JUnit report."""

    def run(job: Job) -> Outcome:
        report = job.log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        code = job.call([python, "-m", "pytest", "-q", f"--junitxml={report}", *arguments])
        outcome = read_junit(report) if report.exists() else Outcome()
        return settle(outcome, code)

    return run


def read_junit(report: Path) -> Outcome:
    """Counts test cases; pytest and Node's test runner both write this format."""
    outcome = Outcome()
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif (skip := case.find("skipped")) is not None:
            outcome.skipped += 1
            outcome.reasons[skip.get("message", "no reason given")] += 1
        else:
            outcome.passed += 1
    return outcome


def fuzz_targets() -> list[tuple[str, list[Path]]]:
    """Names of the fuzz targets, each with the folders of its inputs: committed ones, and made by make_seeds.py."""
    names = sorted(path.stem for path in Path("tests/fuzz").glob("fuzz_*.c"))
    folders = (Path("tests/fuzz/corpus"), Path("build/fuzz/seeds"))
    return [(name, [folder / name for folder in folders if (folder / name).is_dir()]) for name in names]


def replay(job: Job) -> Outcome:
    """Every input of every fuzz target once, and some changes of it, without a fuzzing engine."""
    outcome = Outcome()
    for name, inputs in fuzz_targets():
        if (code := job.call([f"build/{job.suite.build}/{name}", "--mutations", "20", *inputs])) != 0:
            outcome.fail(f"{name}: exit code {code}; the last input of the log broke it")
    for passed, failed, skipped in CLOSING.findall(job.log.read_text(errors="replace")):
        outcome.passed += int(passed)
        outcome.failed += int(failed)
        outcome.skipped += int(skipped)
    return settle(outcome, 0)


def fuzz(job: Job) -> Outcome:
    """Each target for a while, beginning with its inputs; one target is one test."""
    outcome = Outcome()
    for name, inputs in fuzz_targets():
        found, crashes = Path("build/fuzz/corpus", name), Path("build/fuzz/crashes", name)
        for folder in (found, crashes):
            folder.mkdir(parents=True, exist_ok=True)
        options = [f"-max_total_time={job.fuzz_seconds}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]
        job.deadline += job.fuzz_seconds
        code = job.call([Path("build/fuzz", name), *options, f"-artifact_prefix={crashes}/", found, *inputs])
        if code == 0:
            outcome.passed += 1
        else:
            outcome.fail(f"{name}: exit code {code}, its input is in {crashes}")
    return settle(outcome, 0)


def why_not(build: str) -> str | None:
    """Why programs of a build cannot be made or run on this machine, or None."""
    machine = platform.machine()
    if build == "m32" and machine != "x86_64":
        return "32-bit programs need an x86-64 machine"
    if build == "arm64" and machine in ("aarch64", "arm64"):
        return "the native build is the ARM one"
    if build == "arm64" and not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")):
        return "no cross compiler or emulator for AArch64 (tools/setup-arm64.sh)"
    if build in (*WASMS, "npm", "chromium") and not (ROOT / "build/emscripten/installed.txt").exists():
        return "no Emscripten (tools/setup-wasm.sh)"
    if build in (*WASMS, "npm", "chromium") and not shutil.which(NODE):
        return "no Node (tools/setup-browser.sh)"
    if build in ("npm", "chromium") and not (ROOT / "node_modules/esbuild").exists():
        return "no packages of package-lock.json (tools/setup-npm.sh)"
    driver = ROOT / "tests/node_modules/playwright-core"
    if build == "chromium" and not (shutil.which("chromium") and driver.exists()):
        return "no Chromium or no driver for it (tools/setup-browser.sh)"
    return None


STORED_IDS = ("tests/ids/test_ids_golden.py", "tests/ids/test_ids_cases.py")


def on_build(build: str, sets: tuple[str, ...], about: str) -> list[Suite]:
    """The suites that run once for each build."""
    minutes = 20 if build == "asan" else 10
    suffix = "" if build == "native" else f"-{build}"
    unit, ml_run, ids_driver = (f"build/{build}/{program}" for program in ("test_unit", "ml_run", "ids_driver"))
    return [
        Suite(f"unit{suffix}", f"C unit tests{about}", sets, program(unit), (unit,), build, minutes),
        Suite(
            f"golden{suffix}", f"stored results{about}", sets, pytest(VENV, "tests/golden"), (ml_run,), build, minutes
        ),
        Suite(
            f"ids{suffix}", f"stored token ids{about}", sets, pytest(VENV, *STORED_IDS), (ids_driver,), build, minutes
        ),
    ]


def node_tests(*files: str) -> Callable[[Job], Outcome]:
    """Files of tests for Node's runner, which writes the same kind of report."""

    def run(job: Job) -> Outcome:
        report = job.log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        reporters = ["--test-reporter=junit", f"--test-reporter-destination={report}"]
        reporters += ["--test-reporter=spec", "--test-reporter-destination=stdout"]
        code = job.call([NODE, "--test", *reporters, *files])
        outcome = read_junit(report) if report.exists() and report.stat().st_size else Outcome()
        return settle(outcome, code)

    return run


def on_wasm() -> list[Suite]:
    """The wasm modules, and the C test programs compiled to wasm."""
    suites = [
        Suite("wasm", "wasm modules in Node", ALL, node_tests(*JS_TESTS), (*MODULES, "native"), "simd128"),
        Suite("package", "the npm package in Node", ALL, node_tests(*PACKAGE_TESTS), PACKAGE_TARGETS, "npm"),
        Suite(
            "browser",
            "wasm modules and the npm package in Chromium, the package in Firefox and WebKit",
            ALL,
            node_tests(*(f"tests/browser/{name}.test.mjs" for name in ("chromium", "package", "every_browser"))),
            (*MODULES, *PACKAGE_TARGETS),
            "chromium",
        ),
        Suite(
            "everywhere",
            "the same answers natively, in Node, Chromium, Firefox and WebKit",
            ALL,
            node_tests("tests/browser/everywhere.test.mjs"),
            (*MODULES, *PACKAGE_TARGETS),
            "chromium",
        ),
        Suite(
            "visitor",
            "the demo page in Chromium with SmolLM2, in Firefox and WebKit",
            ALL,
            node_tests(*(f"tests/browser/{name}.test.mjs" for name in ("visitor", "markdown", "other_browsers"))),
            ("build/web/index.html", "build/packages"),
            "chromium",
            20,
        ),
    ]
    for build in WASMS:
        unit, checkasm = f"build/{build}/test_unit.mjs", f"build/{build}/checkasm.mjs"
        about = f"kernels with scalar, {build}"
        suites.append(Suite(f"checkasm-{build}", about, ALL, program(*ON_NODE, checkasm), (checkasm,), build))
        if build == "simd128":
            suites.append(Suite("unit-wasm", "C unit tests in wasm", ALL, program(*ON_NODE, unit), (unit,), build))
    return suites


def on_arm64() -> list[Suite]:
    """What runs by the emulator, and what is read off the machine code."""
    unit, checkasm = "build/arm64/test_unit", "build/arm64/checkasm"
    emulated = " by an emulator of AArch64"
    files = ("tests/repo/test_same_bits.py", "tests/parity/arm64_processors.py")
    code = pytest(VENV, *files, "-k", "native_code or platform or processor or dot_products")
    return [
        Suite("unit-arm64", f"C unit tests{emulated}", ALL, program(EMULATOR, unit), (unit,), "arm64"),
        Suite("checkasm-arm64", f"kernels{emulated}", ALL, program(EMULATOR, checkasm), (checkasm,), "arm64"),
        Suite("code-arm64", "machine code for AArch64, and who gets it", ALL, code, ("build/arm64/ml_run",), "arm64"),
    ]


EVERY_EDIT, ALL = ("check", "all"), ("all",)
EMULATOR = "qemu-aarch64"
NODE = next((path for path in ("tests/node_modules/.bin/node",) if (ROOT / path).exists()), "node")
ON_NODE = (NODE, "tests/js/wasm_program.mjs")
JS_TESTS = tuple(f"tests/js/{name}.test.mjs" for name in ("modules", "engine", "relaxed_trial", "bench"))
CHECKASM = "build/native/checkasm"
PACKAGE_TESTS = ("generate", "chat", "source", "lifecycle", "tarball", "cli", "examples")
PACKAGE_TESTS = tuple(f"tests/js/{name}.test.mjs" for name in PACKAGE_TESTS)
MODULES = tuple(f"build/wasm/{build}.wasm" for build in WASMS)
PACKAGE_TARGETS = ("build/package/package.json", "native", "build/packages")
PARITY_TARGETS = ("native", *(("build/arm64/ml_run",) if why_not("arm64") is None else ()))
PARITY_TARGETS += MODULES if why_not("simd128") is None else ()
PYTHON_TARGETS = ("native", "build/native/quantize_driver")
SUITES = [
    Suite("repo", "rules of the repository", EVERY_EDIT, pytest(VENV, "tests/repo"), ("native", CHECKASM)),
    Suite("tools", "Python tools", EVERY_EDIT, pytest(VENV, "tests/python", "-m", "not slow"), PYTHON_TARGETS),
    Suite("tools-slow", "Python tools, thoroughly", ALL, pytest(VENV, "tests/python", "-m", "slow"), PYTHON_TARGETS),
    *on_build("native", EVERY_EDIT, ""),
    *on_build("asan", ALL, " under the sanitizers"),
    *on_build("m32", ALL, " with 32-bit sizes"),
    Suite("checkasm", "kernels with scalar", EVERY_EDIT, program(CHECKASM), (CHECKASM,)),
    Suite(
        "checkasm-asan",
        "kernels with scalar under the sanitizers",
        ALL,
        program("build/asan/checkasm"),
        ("build/asan/checkasm",),
        "asan",
    ),
    *on_arm64(),
    *on_wasm(),
    Suite("parity", "traces with each other, a slice", EVERY_EDIT, pytest(VENV, "tests/parity"), ("native",)),
    Suite(
        "parity-all", "traces with each other", ALL, program(VENV, "tests/parity/parity.py"), PARITY_TARGETS, minutes=20
    ),
    Suite("replay", "inputs of the fuzz targets", EVERY_EDIT, replay, ("replay-native",)),
    Suite("replay-m32", "inputs of the fuzz targets with 32-bit sizes", ALL, replay, ("replay-m32",), "m32"),
    Suite("hf", "comparison with transformers", ALL, pytest(VENV_HF, "tests/oracle"), ("native",), minutes=20),
    Suite(
        "ids-live",
        "token ids of published tokenizers, compared with the tokenizers library",
        ALL,
        pytest(VENV_HF, "tests/ids/test_ids_live.py"),
        ("tokenizers", "build/native/ids_driver"),
        minutes=30,
    ),
    Suite("fuzz", "hostile input", ALL, fuzz, ("fuzz-programs",), "fuzz", minutes=20),
]


def run_suite(suite: Suite, fuzz_seconds: int) -> Outcome:
    """Builds and runs one suite, prints its row, and the end of its log if it failed."""
    start = time.monotonic()
    job = Job(suite, LOGS / f"{suite.name}.log", start + 60 * suite.minutes, fuzz_seconds)
    job.log.write_text("")
    outcome = Outcome()
    if reason := why_not(suite.build):
        outcome.skipped = 1
        outcome.reasons[reason] += 1
    elif not job.make(suite.targets):
        outcome.fail("does not build")
    else:
        job.deadline = time.monotonic() + 60 * suite.minutes
        outcome = suite.run(job)
    counts = f"{outcome.passed:>8}{outcome.failed:>8}{outcome.skipped:>8}{time.monotonic() - start:>8.1f} s"
    rows = [f"{suite.name:<25}{counts}   {suite.about}"]
    rows += [f"{'':25}{times} x {reason}" for reason, times in outcome.reasons.items()]
    if outcome.failed:
        tail = job.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        rows += [f"---- the end of {job.log}", *tail, "----"]
    print("\n".join(rows), flush=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", nargs="?", default="check", choices=["check", "all"])
    parser.add_argument("--only", action="append", metavar="NAME", choices=[suite.name for suite in SUITES])
    parser.add_argument("--list", action="store_true", help="names, sets and subjects of the suites")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="suites at a time")
    parser.add_argument("--fuzz-seconds", type=int, default=60, metavar="N", help="for each target (60)")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    if arguments.list:
        for suite in SUITES:
            print(f"{suite.name:<25}{','.join(suite.sets):<12}{suite.about}")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    chosen = [s for s in SUITES if (s.name in arguments.only if arguments.only else arguments.set in s.sets)]
    print(f"{'suite':<25}{'passed':>8}{'failed':>8}{'skipped':>8}{'time':>10}")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        longest_first = sorted(chosen, key=lambda suite: -suite.minutes)
        runs = [pool.submit(run_suite, suite, arguments.fuzz_seconds) for suite in longest_first]
        try:
            outcomes = [run.result() for run in as_completed(runs)]
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                end(process)
            raise
    passed, failed, skipped = (sum(getattr(o, key) for o in outcomes) for key in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
