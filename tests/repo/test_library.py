"""What makes src/ usable inside other people's programs: no output, no exit, no global state, one prefix, headers that
stand alone."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT, c_code, files_below, text_of

LIBRARY = [
    path
    for path in files_below("src", ".c", ".h")
    if not (path.is_relative_to("src/cli") or path.is_relative_to("src/wasm"))
]
# A header without a guard is a list or template that its users include several times, each with macros of their own.
# Headers of other machines' instruction sets are seen by the builds for those machines.
FOREIGN = re.compile(r"neon|simd128|relaxed" + ("" if platform.machine() == "x86_64" else "|avx"))
HEADERS = [
    path
    for path in files_below("src", ".h")
    if re.search(r"^#ifndef ML_", text_of(path), re.MULTILINE) and not FOREIGN.search(path.stem)
]

FORBIDDEN_HEADER = re.compile(
    r"#\s*include\s*<(?:stdio|signal|setjmp|time|locale|unistd|fcntl|sys/(?!auxv\b)\w+|emscripten[\w/]*)\.h>"
)
FORBIDDEN_CALL = re.compile(
    r"\b(?:exit|_Exit|_exit|quick_exit|abort|atexit|raise|signal|getenv|setenv|system|v?f?s?n?printf|f?puts|putchar"
    r"|fopen|fread|fwrite|perror|time|clock|s?rand|setlocale)\s*\("
)


@pytest.mark.parametrize("path", LIBRARY, ids=str)
def test_library_source_is_silent(path: Path) -> None:
    code = c_code(text_of(path)).splitlines()
    assert [line for line in code if FORBIDDEN_HEADER.search(line) or FORBIDDEN_CALL.search(line)] == []


@pytest.mark.parametrize("line", ["exit(1);", 'printf ("x");', "if (getenv(n)) abort();", "#  include <stdio.h>"])
def test_noise_is_recognised(line: str) -> None:
    assert FORBIDDEN_CALL.search(line) or FORBIDDEN_HEADER.search(line)


@pytest.mark.parametrize("line", ["on_exit_code(x);", "session->time = 1;", "#include <stdint.h>", "ml_print_f(x);"])
def test_quiet_lines_pass(line: str) -> None:
    assert not FORBIDDEN_CALL.search(line)
    assert not FORBIDDEN_HEADER.search(line)


def compiles(language: str, source: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Checks one file by itself. C++ needs no C++ library here, so that a C compiler's C++ mode will do."""
    compiler = "cc"
    if language == "c++" and subprocess.run(["cc", "-x", "c++", "-E", "/dev/null"], capture_output=True).returncode:
        compiler = shutil.which("clang-19") or shutil.which("clang") or pytest.skip("no C++ compiler")
    standard = "-std=c11" if language == "c" else "-std=c++11"
    command = [
        compiler,
        "-x",
        language,
        standard,
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-Isrc",
        "-fsyntax-only",
    ]
    return subprocess.run([*command, *flags, source], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("path", HEADERS, ids=str)
def test_header_stands_alone(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(f'#include "{path.relative_to("src")}"\n#include "{path.relative_to("src")}"\nint nothing;\n')
    result = compiles("c", source, *(["-mavx2", "-mf16c"] if "avx2" in path.stem else []))
    assert result.returncode == 0, result.stderr


def test_public_header_is_also_cpp(tmp_path: Path) -> None:
    source = tmp_path / "alone.cc"
    source.write_text('#include "ml.h"\nint nothing;\n')
    result = compiles("c++", source)
    assert result.returncode == 0, result.stderr


def native_library() -> Path:
    library = ROOT / "build/native/libml.a"
    if not library.exists():
        pytest.skip("build/native/libml.a is not built")
    return library


def test_every_global_symbol_has_the_prefix() -> None:
    output = subprocess.run(
        ["nm", "-g", "--defined-only", native_library()], capture_output=True, text=True, check=True
    )
    symbols = re.findall(r"^[0-9a-f]+ [A-Z] (\S+)$", output.stdout, re.MULTILINE)
    assert len(symbols) > 10
    assert [name for name in symbols if not name.startswith("ml_")] == []


def test_library_has_no_global_state() -> None:
    """Sections of variables are empty; tables are constant."""
    output = subprocess.run(["objdump", "-h", native_library()], capture_output=True, text=True, check=True)
    sections = re.findall(r"^ +\d+ (\.\S+) +([0-9a-f]+) ", output.stdout, re.MULTILINE)
    variables = [(name, size) for name, size in sections if re.match(r"\.(?:data|bss|tdata|tbss)(?!\.rel\.ro)", name)]
    assert variables
    assert [item for item in variables if int(item[1], 16) != 0] == []
