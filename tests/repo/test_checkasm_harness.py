"""checkasm can fail: its objects are linked with a table of planted implementations and its verdict is compared."""

import platform
import re
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT, files_below

# In place of src/kernels/table.c. `planted` is scalar, by functions of its own or scalar's, with two mistakes.
PLANTED = """
#include <string.h>
#include "kernels/tables.h"

static void add(float *x, const float *y, size_t n) {
  ml_kernels_scalar.add(x, y, n);
  if (n == 13) ((unsigned char *)&x[12])[0] ^= 1;
}
static void softcap(float *x, size_t n, float cap) {
  ml_kernels_scalar.softcap(x, n, cap);
  if (n == 21) *(volatile float *)8 = cap;
}
static void rope(float *x, const float *c, const float *s, size_t n) { ml_kernels_scalar.rope(x, c, s, n); }

const ml_kernels *ml_kernels_built(size_t index, bool *can_run) {
  static ml_kernels planted, absent;
  planted = absent = ml_kernels_scalar;
  planted.name = "planted", absent.name = "absent";
  planted.add = absent.add = add, planted.softcap = softcap, planted.rope = rope;
  *can_run = index != 1;
  return index == 0 ? &planted : index == 1 ? &absent : index == 2 ? &ml_kernels_scalar : NULL;
}
const ml_kernels *ml_kernels_find(const char *name) { return strcmp(name, "scalar") ? NULL : &ml_kernels_scalar; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("faults are planted for machines on which address 8 is nobody's")
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted.c").write_text(PLANTED)
    sources = [*files_below("tests/checkasm", ".c"), Path("src/kernels/scalar.c"), Path("src/kernels/fmath.c")]
    objects = [ROOT / "build/native" / path.with_suffix(".o") for path in sources]
    if missing := [path for path in objects if not path.exists()]:
        pytest.fail(f"{missing[0].relative_to(ROOT)} is missing: run `make build/native/checkasm` first")
    command = ["cc", "-std=c11", "-O1", "-Isrc", folder / "planted.c", *objects, "-o", folder / "checkasm", "-lm"]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder / "checkasm"


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)


def test_verdict(program: Path) -> None:
    result = run(program, "--isa", "planted", "--isa", "absent")
    assert result.returncode == 1
    n_kernels = len(re.findall("^--kernel", run(program, "--list").stdout, re.MULTILINE))
    # Of `planted` only rope is right, and all that is not a function of its own is skipped.
    assert result.stdout.splitlines()[-1] == f"1 passed, 2 failed, {2 * n_kernels - 3} skipped"
    assert "planted silu_mul: skipped: it is scalar's own function" in result.stdout
    assert "absent add: skipped: this machine lacks its instructions" in result.stdout
    assert re.search(r"^planted rope: \d+ cases$", result.stdout, re.MULTILINE)


def test_one_bit_is_found_and_described(program: Path) -> None:
    output = run(program, "--isa", "planted", "--kernel", "add").stdout
    found = re.search(r"\n    n 13, smooth: x\[12\] is (\w{8}) \(\S+\), scalar's (\w{8}) \(\S+\)\n", output)
    assert found
    assert int(found[1], 16) ^ int(found[2], 16) == 1
    assert "FAILED: 5 of 390 cases; again with --seed 1 --isa planted --kernel add" in output


def test_a_fault_names_kernel_and_case(program: Path) -> None:
    output = run(program, "--isa", "planted", "--kernel", "softcap").stdout
    assert re.search(r"^planted softcap\n    n 21, cap \S+, smooth: SIGSEGV", output, re.MULTILINE)
    assert output.endswith("\n0 passed, 1 failed, 0 skipped\n")


def test_a_failure_is_repeated_by_its_seed(program: Path) -> None:
    def report(*arguments: str) -> str:
        return run(program, "--isa", "planted", *arguments).stdout.partition("planted add")[2].partition("FAILED")[0]

    assert report("--kernel", "add") == report()
    assert report("--kernel", "add", "--seed", "1") == report()
    assert report("--seed", "2") != report()


def test_wrong_usage(program: Path) -> None:
    for arguments in (["--isa", "none"], ["--kernel", "ad"], ["--seed", "7x"], ["--seed"], ["add"]):
        result = run(program, *arguments)
        assert (result.returncode, result.stdout) == (2, "")


def test_only_scalar_is_no_pass(program: Path) -> None:
    result = run(program, "--isa", "scalar")
    assert result.stdout.endswith("scalar: skipped: nothing to compare it with\n0 passed, 0 failed, 1 skipped\n")
