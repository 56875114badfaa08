"""The command line of ml_run: options, ids, mistakes, exit codes, and what goes to which stream."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import IDS, Program, listed


def long_options(run: Program) -> list[str]:
    text = run("--help").out
    words = [word.rstrip(",") for line in text.splitlines() if line.startswith("  ") for word in line.split()[:2]]
    return [word for word in dict.fromkeys(words) if word.startswith("--")]


# ---------------------------------------------------------------- help


def test_nothing_typed_gives_a_short_usage(run):
    answer = run()
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("usage: ml_run")
    assert answer.err.count("\n") < 8


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(run, option):
    answer = run(option)
    assert answer.code == 0
    assert answer.err == ""
    assert max(map(len, answer.out.splitlines())) <= 110
    promised = "-m --ids -n --ctx --temp --top-k --top-p --min-p --seed --exact --isa --threads --batch --perplexity"
    promised += " --bench --imatrix --trace --info --logits --check --stop-ids --json --help"
    assert [option for option in promised.split() if option not in answer.out] == []
    assert "Exit codes" in answer.out


def test_help_wins_over_everything_that_could_be_parsed(run):
    assert run("--info", "--help").code == 0
    assert run("--help", "--bench").out.startswith("ml_run runs")


def test_help_names_no_option_that_does_not_exist(run):
    options = long_options(run)
    assert len(options) > 25
    for option in options:
        assert "unknown" not in run(option).err, option


def test_isa_list(run):
    answer = run("--isa", "list")
    assert answer.code == 0
    assert "scalar" in answer.out.splitlines()
    assert run("-m", run.model(), "--info", "--isa", answer.out.splitlines()[0]).code == 0


# ---------------------------------------------------------------- wrong usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--threds", "2"], ["unknown", "--threds", "did you mean --threads"]),
        (["--seeed", "2"], ["did you mean --seed"]),
        (["--top", "3"], ["unknown", "--top", "did you mean --top-"]),
        (["--completely-different"], ["unknown option --completely-different"]),
        (["-x"], ["unknown option -x"]),
        (["-n"], ["-n needs a value"]),
        (["--ids"], ["--ids needs a value: LIST|FILE"]),
        (["--json=3"], ["--json takes no value"]),
        (["model.mlb"], ["an input is needed", "--ids"]),  # a word alone is the model
        (["a.mlb", "b.mlb"], ["unexpected argument b.mlb", "-m FILE"]),
        (["-m", "a.mlb", "b.mlb"], ["unexpected argument b.mlb", "-m FILE"]),
        (["--bench", "--info"], ["--bench", "--info", "one thing at a time"]),
        (["--logits", "a", "--imatrix", "b"], ["--logits", "--imatrix"]),
        (["--info", "--temp", "1", "-m", "x"], ["--temp has no meaning with --info"]),
        (["--json", "-m", "x", "--ids", "1"], ["--json has no meaning with generating"]),
        (["--kv", "q4", "-m", "x"], ["--kv q4", "f32 or q8"]),
        (["--stride", "3", "--bench", "-m", "x"], ["--stride has no meaning with --bench"]),
        (["--check", "x", "-m", "y"], ["--model has no meaning with --check"]),
        (["--ids", "1"], ["a model is needed", "-m FILE"]),
        (["--info"], ["a model is needed"]),
        (["--bench"], ["a model is needed"]),
        (["-m", "x"], ["an input is needed", "--ids"]),
        (["-m", "x", "--perplexity"], ["an input is needed"]),
    ],
)
def test_wrong_usage(run, arguments, words):
    answer = run(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("ml_run: ")
    assert [word for word in words if word not in answer.err] == [], answer.err


COUNTS = {
    "-n": "0 to 16777216",
    "--ctx": "1 to 16777216",
    "--batch": "1 to 16777216",
    "--threads": "0 to 64",
    "--top-k": "0 to 16777216",
    "--seed": "0 to 18446744073709551615",
}


@pytest.mark.parametrize("option", COUNTS)
@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "1x", " 1", "nan", "99999999999999999999999", "0x10"])
def test_counts_are_checked(run, option, value):
    answer = run("-m", "x", "--ids", "1", option, value)
    assert answer.code == 2
    assert f"{value}: must be a whole number from {COUNTS[option]}" in answer.err


@pytest.mark.parametrize(
    ("option", "value"), [("--ctx", "0"), ("--batch", "0"), ("--threads", "65"), ("-n", "16777217")]
)
def test_counts_have_limits(run, option, value):
    assert f"{value}: must be a whole number from" in run("-m", "x", "--ids", "1", option, value).err


@pytest.mark.parametrize(
    ("option", "values", "rule"),
    [
        ("--temp", ["-1", "nan", "inf", "x", "", "1x", "1e39"], "must be a finite number, 0 or more"),
        ("--top-p", ["-0.1", "1.1", "nan", "x"], "must be a number from 0 to 1"),
        ("--min-p", ["-0.1", "1.1", "nan", "x"], "must be a number from 0 to 1"),
        ("--repetition-penalty", ["-1", "nan", "inf"], "must be a finite number, 0 or more"),
        ("--presence-penalty", ["nan", "inf", "-inf", "x"], "must be a finite number"),
        ("--frequency-penalty", ["nan", "inf", "-1e39"], "must be a finite number"),
    ],
)
def test_numbers_are_checked(run, option, values, rule):
    for value in values:
        answer = run("-m", "x", "--ids", "1", option, value)
        assert answer.code == 2
        assert f"{option} {value}: {rule}" in answer.err


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("-1", ["item 1", "'-1' is below 0"]),
        ("1,2,-3", ["item 3", "'-3' is below 0"]),
        ("2147483648", ["item 1", "2147483648", "above 2147483647"]),
        ("99999999999999999999999999", ["item 1", "above 2147483647"]),
        ("7 1.5", ["item 2", "'1.5' is not a whole number"]),
        ("1,2,x", ["item 3", "'x' is not a whole number"]),
        ('1,"5"', ["item 2", "'\"5\"' is not a whole number"]),
        ("1,--2", ["item 2", "'--2' is not a whole number"]),
        ("+", ["item 1", "'+' is not a whole number"]),
        ("x", ["'x' is neither a list of ids nor an existing file"]),
        ("NaN", ["'NaN' is neither a list"]),
        ("", ["the list is empty"]),
        (" , ,", ["the list is empty"]),
        ("1,251", ["item 2", "token id 251", "vocabulary of 251"]),
        ("2147483647", ["token id 2147483647", "vocabulary of 251"]),
    ],
)
def test_bad_ids(run, ids, words):
    answer = run("-m", run.model(), "--ids", ids)
    assert answer.status == "ML_E_ARG"
    assert answer.out == ""
    assert [word for word in words if word not in answer.err] == [], answer.err


def test_bad_ids_in_files_are_found_by_line(run, tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("1 2\n3,4\n5 six\n")
    answer = run("-m", run.model(), "--ids", path)
    assert answer.status == "ML_E_ARG"
    assert f"{path}, line 3, item 6: 'six'" in answer.err
    assert "standard input, line 2, item 2: '1.5'" in run("-m", run.model(), "--ids", "-", stdin=b"1\n1.5\n").err
    assert "standard input: the list is empty" in run("-m", run.model(), "--ids", "-").err
    path.write_bytes(b"1 2\x003")
    assert "item 2" in run("-m", run.model(), "--ids", path).err
    path.write_text("8" * 1000)
    assert len(run("-m", run.model(), "--ids", path).err) < 400
    assert run("-m", run.model(), "--ids", tmp_path).status == "ML_E_IO"


def test_ids_may_be_written_in_many_ways(run, tmp_path):
    expected = run("-m", run.model(), "--ids", listed(IDS), "-n", 8).ids
    assert len(expected) == 8
    for text in (
        " ".join(map(str, IDS)),
        ", ".join(map(str, IDS)) + ",",
        "+3," + listed(IDS[1:]),
        "003," + listed(IDS[1:]),
    ):
        assert run("-m", run.model(), "--ids", text, "-n", 8).ids == expected
    path = tmp_path / "12"  # a list, unless a path says otherwise
    path.write_text("\n".join(map(str, IDS)) + "\r\n")
    assert run("-m", run.model(), "--ids", path, "-n", 8).ids == expected
    assert run("-m", run.model(), "--ids", "-", "-n", 8, stdin=path.read_bytes()).ids == expected


def test_long_lists_come_from_files(run, tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text(listed(IDS * 5000))
    answer = run("-m", run.model(), "--ids", path)
    assert answer.status == "ML_E_CONTEXT"
    assert "60000 ids" in answer.err


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("options", [[], ["--mmap"]])
def test_files_that_cannot_be_opened(run, tmp_path, options):
    for path in (tmp_path, tmp_path / "missing.mlb", tmp_path / "a" / "b"):
        answer = run("-m", path, "--ids", "1", *options)
        assert answer.status == "ML_E_IO"
        assert str(path) in answer.err


def test_damaged_models(run, tmp_path):
    path = tmp_path / "damaged.mlb"
    data = run.model().read_bytes()
    for options in ([], ["--mmap"]):
        path.write_bytes(data[:-1000])
        assert run("-m", path, "--ids", "1", *options).status == "ML_E_FORMAT"
        path.write_bytes(data[:8] + bytes(4) + data[12:])
        assert run("-m", path, "--info", *options).status == "ML_E_SHAPE"


def test_model_through_a_pipe(run):
    data = run.model().read_bytes()
    expected = run("-m", run.model(), "--ids", listed(IDS), "-n", 8).out
    for name in ("-", "/dev/stdin"):
        assert run("-m", name, "--ids", listed(IDS), "-n", 8, stdin=data).out == expected
    answer = run("-m", "-", "--mmap", "--ids", "1", stdin=data)
    assert answer.status == "ML_E_IO"
    assert "--mmap" in answer.err


# ---------------------------------------------------------------- sessions


def test_context_larger_than_the_models(run):
    answer = run("-m", run.model(), "--ids", "1", "--ctx", 257)
    assert answer.status == "ML_E_CONTEXT"
    assert "257" in answer.err
    assert "256" in answer.err


@pytest.mark.parametrize(("n_prompt", "n_generated"), [(30, 2), (31, 1), (32, 0)])
def test_full_context_ends_with_length(run, n_prompt, n_generated):
    answer = run("-m", run.model(), "--ids", listed((IDS * 3)[:n_prompt]), "--ctx", 32)
    assert len(answer.ids) == n_generated
    assert answer.finish() == "length (the context is full)"


def test_prompt_that_does_not_fit(run):
    answer = run("-m", run.model(), "--ids", listed((IDS * 3)[:33]), "--ctx", 32)
    assert answer.status == "ML_E_CONTEXT"
    assert "33 ids" in answer.err
    assert "context of 32" in answer.err
    assert answer.out == ""


def test_unknown_kernels(run):
    answer = run("-m", run.model(), "--ids", "1", "--isa", "no-such-thing")
    assert answer.status == "ML_E_ARG"
    assert "no-such-thing" in answer.err
    assert "--isa list" in answer.err


# ---------------------------------------------------------------- streams


def test_results_and_remarks_do_not_mix(run):
    answer = run("-m", run.model(), "--ids", listed(IDS), "-n", 5)
    assert len(answer.ids) == 5
    assert [line.split()[0] for line in answer.err.splitlines()] == ["load", "prompt", "generated", "kernels", "finish"]
    quiet = run("-m", run.model(), "--ids", listed(IDS), "-n", 5, "--quiet")
    assert quiet.out == answer.out
    assert quiet.err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments", [["--ids", "1,2"], ["--info"], ["--ids", "1,2", "--trace"], ["--bench", "--json"]]
)
def test_full_disk_is_reported(run, arguments):
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [run.path, "-m", run.model(), *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert result.returncode == 1
    assert b"ML_E_IO: cannot write the results: No space left on device" in result.stderr


def test_closed_pipe_ends_the_work_and_is_reported(run):
    command = [run.path, "-m", run.model("long_context"), "--ids", "1", "-n", "16777216", "--ctx", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(3)
        process.stdout.close()
        process.stdout = None
        message = process.stderr.read()
        assert process.wait(60) == 1
    assert b"ML_E_IO: cannot write the results: Broken pipe" in message


# ---------------------------------------------------------------- Ctrl-C


def wait_for_handler(process: subprocess.Popen) -> None:
    """Until the program has taken Ctrl-C over; before that it ends like any other."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("this system has no /proc to look into")
    for _ in range(2000):
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1):
            return
        time.sleep(0.005)
    pytest.fail("Ctrl-C was never taken over")


def test_interrupt_ends_after_the_current_id(run):
    command = [run.path, "-m", run.model("long_context"), "--ids", "1", "-n", "16777216", "--ctx", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.read(3)
        process.send_signal(signal.SIGINT)
        output, message = process.communicate(timeout=60)
        assert process.returncode == 0
    assert output.endswith("\n")
    assert all(word.isdigit() for word in output.split())
    assert "generated" in message
    assert "finish     stopped (Ctrl-C)" in message


@pytest.mark.parametrize("mode", ["--perplexity", "--logits", "--imatrix", "--trace"])
def test_interrupt_before_the_result_leaves_no_file(run, tmp_path, mode):
    ids = tmp_path / "ids.txt"
    ids.write_text(listed(IDS * 5000))
    command = [run.path, "-m", run.model("long_context"), "--ids", ids, mode, "--ctx", "60000", "--batch", "16"]
    folder = tmp_path / "out"
    folder.mkdir()
    if mode in ("--logits", "--imatrix"):
        command.insert(command.index(mode) + 1, folder / "file")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        wait_for_handler(process)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
        assert process.returncode == 130
    assert "ml_run: interrupted: " in message
    assert list(folder.iterdir()) == []


def wait_for_work(process: subprocess.Popen, seconds: float) -> None:
    """Until the program has used that much of a processor, or has ended."""
    ticks = seconds * os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        if int(user) + int(system) >= ticks:
            return
        time.sleep(0.01)


def test_second_interrupt_leaves_at_once(run, tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text(listed(IDS * 5000))
    command = [run.path, "-m", run.model("long_context"), "--ids", ids, "--ctx", "60000", "--batch", "60000"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for_handler(process)
        wait_for_work(process, 0.5)  # opening takes far less; what follows is one batch that takes very long
        process.send_signal(signal.SIGINT)
        wait_for_work(process, 1)
        assert process.poll() is None, "the first Ctrl-C ended it"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
