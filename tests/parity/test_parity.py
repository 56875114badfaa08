"""parity.py can fail: runners with planted differences are compared by it. And a slice of the matrix for every edit."""

import sys
from pathlib import Path

import pytest
from tiny import write_tiny

import parity

# Runs ml_run and edits its trace by a rule: `lines` are the trace's, words are position, layer, stage, floats, hash.
# It has scalar kernels only, which makes it quick.
PLANTED = """
import subprocess, sys
if "list" in sys.argv:
    sys.exit(print("scalar"))
result = subprocess.run([{ml_run!r}, *sys.argv[1:]], capture_output=True, text=True)
lines = result.stdout.splitlines()
if "--trace" in sys.argv and {when!r} in " ".join(sys.argv):
    {edit}
print(*lines, sep="\\n")
sys.exit(result.returncode)
"""
CHANGE = "lines = [line[:-1] + 'x' if line.split()[:3] in {places} else line for line in lines]"


@pytest.fixture
def model(tmp_path: Path) -> parity.Model:
    path = tmp_path / "llama.mlb"
    write_tiny(path, "llama")
    return parity.Model("llama", path, 12)


@pytest.fixture
def compare(ml_run: Path, tmp_path: Path, model: parity.Model):
    """The report on the native build beside a planted runner, which edits traces of runs with `when` as options."""
    native = parity.Runner("native", (str(ml_run),))

    def run(edit: str, when: str = "") -> parity.Report:
        script = tmp_path / "planted.py"
        script.write_text(PLANTED.format(ml_run=str(ml_run), edit=edit, when=when))
        return parity.compare_all([model], [native, parity.Runner("planted", (sys.executable, str(script)))], True)

    return run


def rows_that_failed(report: parity.Report) -> set[str]:
    return {runner for (runner, _), row in report.rows.items() if row.failed}


def test_a_runner_without_a_mistake_passes(compare, capsys) -> None:
    report = compare("pass")
    assert report.differences == []
    assert {runner for runner, _ in report.rows} == {"native", "planted"}
    assert all(row.models == 1 and row.hashes > 1000 for row in report.rows.values())
    report.print()
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(report.rows)} passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("places", "first"),
    [
        ([["3", "1", "q"], ["2", "1", "ffn_mid"], ["2", "-1", "logits"]], "position 2, layer 1, stage ffn_mid"),
        ([["3", "0", "v"], ["3", "0", "k"], ["3", "1", "q"]], "position 3, layer 0, stage k"),
        ([["0", "-1", "final"], ["0", "1", "layer"]], "position 0, layer 1, stage layer"),
        ([["11", "-1", "logits"]], "position 11, stage logits"),
        ([["0", "-1", "embed"], ["0", "0", "block_in"]], "position 0, stage embed"),
    ],
)
def test_the_first_differing_stage_is_named(compare, places, first) -> None:
    report = compare(CHANGE.format(places=places))
    assert rows_that_failed(report) == {"planted"}
    assert report.differences
    assert all(f": {first}: " in text for text in report.differences)
    assert report.counts[1] == sum(runner == "planted" for runner, _ in report.rows)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("del lines[100]", "missing"),
        ("lines.append('99 0 q 64 0123456789abcdef')", "position 99, layer 0, stage q: 64 0123456789abcdef"),
        ("lines.append(lines[7])", "come twice"),
        ("sys.exit(0)", "an empty trace"),
        ("lines[3] = 'warning: 1 2'", "not a line of a trace: 'warning: 1 2'"),
        ("sys.exit('out of order')", "out of order"),
    ],
)
def test_a_trace_that_is_not_whole_fails(compare, edit, words) -> None:
    report = compare(edit)
    assert rows_that_failed(report) == {"planted"}
    assert all(words in text for text in report.differences)


# A runner that serves: the first of its runs dies, fails or answers with an empty trace.
SERVER = """
import json, sys
if "--serve" not in sys.argv:
    sys.exit(print("scalar"))
for line in sys.stdin:
    if "list" in json.loads(line):
        print(json.dumps({{"code": 0, "out": "scalar"}}), flush=True)
    else:
        {end}
"""


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("sys.exit('out of order')", "it died\nout of order"),
        ("print(json.dumps(dict(code=1, err='out of memory')), flush=True)", "exit code 1\nout of memory"),
        ("print(json.dumps(dict(code=0, out='')), flush=True)", "an empty trace"),
    ],
)
def test_a_runner_that_serves_badly_fails(end, words, ml_run, model, tmp_path) -> None:
    script = tmp_path / "served.py"
    script.write_text(SERVER.format(end=end))
    native = parity.Runner("native", (str(ml_run),))
    served = parity.Runner("served", (sys.executable, str(script)), exact=False, wasm=True)
    report = parity.compare_all([model], [native, served], slice_only=True)
    assert rows_that_failed(report) == {"served"}
    assert len(report.differences) == len(parity.ways_of(model, served, "scalar", True))
    assert all(words in text for text in report.differences)


def test_a_difference_in_one_way_is_found(compare) -> None:
    report = compare(CHANGE.format(places=[["5", "0", "mixed"]]), when="--mmap --threads 2")
    assert len(report.differences) == sum(runner == "planted" for runner, _ in report.rows)
    assert all("--mmap --threads 2 --batch 1: position 5, layer 0, stage mixed" in text for text in report.differences)


def test_a_runner_that_is_not_built_is_skipped(ml_run: Path, model: parity.Model, capsys) -> None:
    native, missing = parity.Runner("native", (str(ml_run),)), parity.Runner("wasm", ("build/no/such/program",))
    report = parity.compare_all([model], [native, missing], slice_only=True)
    assert report.counts == (len(native.tables()), 0, 1)
    report.print()
    assert "wasm: skipped: " in capsys.readouterr().out


def test_nothing_compared_is_a_failure(model: parity.Model) -> None:
    missing = parity.Runner("native", ("build/no/such/program",))
    assert parity.compare_all([model], [missing]).counts == (0, 1, 1)
    assert parity.compare_all([], [parity.RUNNERS[0]]).counts[1] == 1


@pytest.mark.parametrize("name", parity.SLICE)
def test_same_bits_on_the_native_build(name: str, ml_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.mlb"
    write_tiny(path, name)
    model = parity.Model(name, path, parity.TINY_IDS)
    report = parity.compare_all([model], [parity.Runner("native", (str(ml_run),))], slice_only=True)
    assert report.differences == []
    assert report.counts[0] >= 2
