"""The C unit test harness can fail: planted tests are compiled with it and its verdict is compared."""

import re
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT

PLANTED = """
#include "test.h"
TEST(a_pass) { CHECK(true); CHECK_EQ_U64(2, 2); CHECK_NEAR(1.0, 1.25, 0.5); }
TEST(b_%(name)s) { %(check)s; CHECK(true); }
TEST(c_checks_nothing) { (void)test_random_u64(); }
TEST(d_skip) { SKIP("no such device"); CHECK(false); }
"""

FAILING_CHECKS = {
    "check": "CHECK(1 == 2)",
    "u64": "CHECK_EQ_U64(UINT64_MAX, UINT64_MAX - 1)",
    "i64": "CHECK_EQ_I64(-1, 1)",
    "zero_sign": "CHECK_EQ_F32_BITS(0.0f, -0.0f)",
    "text": 'CHECK_EQ_TEXT("a", "b")',
    "no_text": 'CHECK_EQ_TEXT("a", NULL)',
    "bytes": 'CHECK_EQ_BYTES("abc", "abd", 3)',
    "near": "CHECK_NEAR(1.0, 1.75, 0.5)",
    "near_nan": "CHECK_NEAR(0.0 / zero, 1.0, 1e9)",
    "require": "REQUIRE(false)",
}


def build(folder: Path, source: str) -> Path:
    (folder / "test_planted.c").write_text(source)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes", "-Itests/unit"]
    program = folder / "test_planted"
    command = ["cc", *flags, "tests/unit/test_main.c", folder / "test_planted.c", "-o", program]
    subprocess.run(command, cwd=ROOT, check=True)
    return program


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=30)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("planted"), PLANTED % {"name": "fail", "check": "CHECK(1 == 2)"})


@pytest.fixture(scope="module")
def every_check(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    tests = [f"TEST({name}) {{ {check}; }}" for name, check in FAILING_CHECKS.items()]
    source = (
        '#include "test.h"\nstatic volatile double zero;\n' + "\n".join(tests) + "\nTEST(use) { CHECK(zero == 0); }\n"
    )
    return run(build(tmp_path_factory.mktemp("every"), source))


@pytest.mark.parametrize("name", FAILING_CHECKS)
def test_check_can_fail(every_check: subprocess.CompletedProcess[str], name: str) -> None:
    assert re.search(rf"^{name}\n    \S+test_planted\.c:\d+: .+\n    FAILED: 1 of 1 checks$", every_check.stdout, re.M)
    assert every_check.stdout.endswith(f"\n1 passed, {len(FAILING_CHECKS)} failed, 0 skipped\n")


def test_verdict(planted: Path) -> None:
    result = run(planted)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 2 skipped"
    assert "c_checks_nothing: skipped: compared nothing" in result.stdout
    assert "d_skip: skipped: no such device" in result.stdout


def test_filter_selects_by_part_of_the_name(planted: Path) -> None:
    result = run(planted, "pass")
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    assert run(planted, "no test has this name").returncode == 2


def test_list_and_wrong_usage(planted: Path) -> None:
    assert run(planted, "--list").stdout.split() == ["a_pass", "b_fail", "c_checks_nothing", "d_skip"]
    assert run(planted, "--nonsense").returncode == 2
    assert run(planted, "--seed", "7x").returncode == 2


def test_random_numbers_follow_seed_and_name_alone(tmp_path: Path) -> None:
    source = '#include <stdio.h>\n#include "test.h"\n'
    for name in ("a", "b"):
        source += f'TEST({name}) {{ printf(" %u", test_random_below(1u << 30)); CHECK(true); }}\n'
    program = build(tmp_path, source)

    def numbers(*arguments: str) -> list[str]:
        return re.findall(r"^[ab] (\d+): ok$", run(program, *arguments).stdout, re.MULTILINE)

    both = numbers()
    assert len(set(both)) == 2
    assert numbers("b") == both[1:]
    assert numbers("--seed", "1") == both
    assert numbers("--seed", "2") != both
    assert "seed 1\n" in run(program).stdout
