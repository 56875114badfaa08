"""Bad and odd .mlb files through the two readers: the Python reference and `ml_run --check`.

The same files, the same statuses, and each message names the field. A last test walks every header field through a
list of values and asks both readers; there the reference is not a list of expectations but the other reader.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bad_files import Case, cases, changed, flags_of, header_of, tiny_bytes, truncations
from mlb import E_FORMAT, E_IO, E_SHAPE, FIELDS, HEADER_SIZE, OK, MlbError, validate, verify_model
from mlb_layout import FLOAT_FIELDS

CASES = cases()
TRUNCATED = ("llama", "linear_q4", "everything")


def in_python(path: Path) -> tuple[str, str]:
    try:
        verify_model(path)
    except MlbError as error:
        return error.status, str(error)
    return OK, ""


@pytest.fixture(scope="module")
def in_c(root: Path):
    """`ml_run --check` as a function from a path to status name and message."""
    program = root / "build" / os.environ.get("ML_BUILD", "native") / "ml_run"
    if not program.exists():
        pytest.skip(f"{program.relative_to(root)} is not built")

    def check(path: Path) -> tuple[str, str]:
        run = subprocess.run([program, "--check", path], capture_output=True, text=True, timeout=60)
        output = (run.stdout + run.stderr).replace(str(path), "FILE")
        if run.returncode == 0:
            return OK, output
        assert run.returncode == 1, f"{path.name}: exit code {run.returncode}: {output}"
        status = next((word for word in output.replace(":", " ").split() if word.startswith("ML_E_")), "")
        return status, output

    return check


@pytest.fixture
def write(tmp_path: Path):
    """Puts a case on disk, always at the same place."""
    path = tmp_path / "case.mlb"

    def put(data: bytes) -> Path:
        path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_python(case: Case, write):
    assert (complaint := case.judge(*in_python(write(case.data)))) is None, complaint


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_c(case: Case, write, in_c):
    assert (complaint := case.judge(*in_c(write(case.data)))) is None, complaint


@pytest.mark.parametrize("feature", TRUNCATED)
def test_python_truncated(feature: str, write):
    complaints = [case.judge(*in_python(write(case.data))) for case in truncations(feature)]
    assert len(complaints) > 100
    assert [c for c in complaints if c] == []


@pytest.mark.parametrize("feature", TRUNCATED)
def test_c_truncated(feature: str, write, in_c):
    complaints = [case.judge(*in_c(write(case.data))) for case in truncations(feature)]
    assert len(complaints) > 100
    assert [c for c in complaints if c] == []


def test_python_paths(tmp_path: Path):
    assert in_python(tmp_path / "missing.mlb")[0] == E_IO
    assert in_python(tmp_path)[0] == E_IO


def test_c_paths(tmp_path: Path, in_c):
    assert in_c(tmp_path / "missing.mlb")[0] == E_IO
    assert in_c(tmp_path)[0] == E_IO


# ---------------------------------------------------------------- every field, both readers

WHOLE = (0, 1, 2, 3, 4, 5, 7, 16, 32, 96, 127, 128, 256, 65536, 65537, 1 << 24, (1 << 24) + 1, 1 << 31, 0xFFFFFFFF)
REAL = (0.0, -0.0, 1e-45, -1e-45, 0.5, 1.0, -1.0, 32.0, 1e4, 3e38, float("inf"), float("-inf"), float("nan"))


def field_sweep() -> Iterator[tuple[str, bytes]]:
    for name in FIELDS:
        for value in REAL if name in FLOAT_FIELDS else WHOLE:
            yield f"{name} = {value}", changed("everything", **{name: value})


def test_python_field_sweep():
    """Neither reader is right by itself; but validate() must not fall over, and all statuses must be seen."""
    seen = set()
    for _, data in field_sweep():
        header = header_of(data)
        flags = data[HEADER_SIZE : HEADER_SIZE + header.n_layers] if header.layer_flags else None
        seen.add(validate(header, flags, len(data))[0])
    assert seen == {OK, E_FORMAT, E_SHAPE}


def test_c_agrees_on_every_field(write, in_c):
    compared, different = 0, []
    for name, data in field_sweep():
        path = write(data)
        python, c = in_python(path), in_c(path)
        compared += 1
        if python[0] != c[0]:
            different.append(f"{name}: {python} and {c}")
    assert compared > 500
    assert different == []


# ---------------------------------------------------------------- the cases themselves


def test_enough_cases():
    bad = [case for case in CASES if case.status != OK]
    assert len(bad) >= 120
    assert len(CASES) - len(bad) >= 40
    assert {case.status for case in bad} == {E_FORMAT, E_SHAPE}
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.data for case in CASES}) >= len(CASES) - 4  # some fields' odd values are also their plain ones


def test_every_field_is_broken_once():
    named = {word for case in CASES for word in case.words}
    assert set(FIELDS) - named == {"shared_classifier"}  # the one that may hold anything


def test_every_bad_message_is_named():
    assert [case.name for case in CASES if case.status != OK and not case.words] == []


def test_judge_can_fail():
    case = Case("sample", b"", E_FORMAT, ("layer_flags", "16"))
    assert case.judge(E_FORMAT, "layer flags 16 in layer 0") is None
    assert "expected ML_E_FORMAT" in case.judge(E_SHAPE, "layer_flags 16")
    assert "expected ML_E_FORMAT" in case.judge(OK, "")
    assert "expected ML_E_FORMAT" in case.judge("", "layer_flags 16")
    assert "16 not named" in case.judge(E_FORMAT, "layer_flags 17")
    assert "layer_flags not named" in case.judge(E_FORMAT, "act 16")
    assert "16 not named" in case.judge(E_FORMAT, "layer_flags 160")
    assert "dim not named" in Case("sample", b"", E_SHAPE, ("dim",)).judge(E_SHAPE, "head_dim 3")


def test_the_unchanged_models_load(write):
    """Otherwise the bad ones might be refused for something else than what was broken in them."""
    for feature in ("one_layer", "llama", "q4", "untied", "nope", "local_rope", "linear", "linear_q4", "everything"):
        data = tiny_bytes(feature)
        assert in_python(write(data)) == (OK, "")
        assert replace(header_of(data)).pack() == data[:HEADER_SIZE]
        assert (flags_of(data) is not None) == bool(header_of(data).layer_flags)
