"""tests/run.py can fail: planted suites are run by it and its verdict is compared."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from repo_files import ROOT

import run as runner

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run_suites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs planted suites (name -> shell script) as `tests/run.py all`; gives the exit code and the lines printed."""

    def run(scripts: dict[str, str], seconds: float = 60) -> tuple[int, list[str]]:
        suites = []
        for name, script in scripts.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
            suites.append(runner.Suite(name, "planted", ("all",), runner.program(str(path)), minutes=seconds / 60))
        monkeypatch.setattr(runner, "SUITES", suites)
        monkeypatch.setattr(runner, "LOGS", tmp_path / "log")
        monkeypatch.setattr(sys, "argv", ["run.py", "all"])
        monkeypatch.chdir(ROOT)
        code = runner.main()
        return code, capsys.readouterr().out.splitlines()

    return run


def test_sum_of_passing_suites(run_suites: Run) -> None:
    code, lines = run_suites(
        {
            "one": "echo 'x: skipped: no device'; echo '3 passed, 0 failed, 1 skipped'",
            "two": "echo '4 passed, 0 failed, 0 skipped'",
        }
    )
    assert code == 0
    assert lines[-1] == "7 passed, 0 failed, 1 skipped"
    assert any(line.split()[:4] == ["one", "3", "0", "1"] for line in lines)
    assert any("1 x no device" in line for line in lines)


@pytest.mark.parametrize(
    ("script", "failed", "reason"),
    [
        ("echo 'went wrong'; echo '1 passed, 2 failed, 0 skipped'; exit 1", 2, "went wrong"),
        ("echo '1 passed, 1 failed, 0 skipped'", 1, ""),
        ("echo '0 passed, 0 failed, 0 skipped'", 1, "compared nothing"),
        ("echo 'no closing line'", 1, "compared nothing"),
        ("echo '5 passed, 0 failed, 0 skipped'; exit 3", 1, "exit code 3"),
        ("echo '5 passed, 0 failed, 0 skipped'; kill -SEGV $$", 1, "exit code -11"),
    ],
)
def test_failure_is_counted(run_suites: Run, script: str, failed: int, reason: str) -> None:
    code, lines = run_suites({"good": "echo '1 passed, 0 failed, 0 skipped'", "bad": script})
    assert code == 1
    assert f", {failed} failed, " in lines[-1]
    assert any(reason in line for line in lines)


def test_a_suite_that_hangs_is_ended(run_suites: Run) -> None:
    code, lines = run_suites({"slow": "echo '1 passed, 0 failed, 0 skipped'; sleep 30"}, seconds=0.1)
    assert code == 1
    assert any("out of time" in line for line in lines)


def test_what_does_not_build_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "LOGS", tmp_path)
    monkeypatch.chdir(ROOT)
    suite = runner.Suite("broken", "planted", ("all",), runner.program("true"), ("no-such-target",))
    assert runner.run_suite(suite, fuzz_seconds=1).failed == 1


def test_junit_reports_are_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase/><testcase/><testcase><failure/></testcase><testcase><error/></testcase>"
        '<testcase><skipped message="no torch"/></testcase></testsuite></testsuites>'
    )
    outcome = runner.read_junit(report)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (2, 2, 1)
    assert outcome.reasons == {"no torch": 1}
