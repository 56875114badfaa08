"""The build side of docs/NUMERICS.md: no compiler may fuse, reorder or borrow from the platform's math library."""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT, c_code, files_below, text_of

FAST_MATH = re.compile(
    r"(?<!\S)-(?:ffast-math|Ofast|mfma4?|m?funsafe|fassociative|freciprocal|ffinite|ffp-contract=(?!off))"
)
# x86: vfmadd213ps, vfnmsub231sd; ARM: fmadd, fmla, fnmsub, vfma, vfms.
FUSED = re.compile(r"\t(?:vfn?m(?:add|sub)\w*|fn?m(?:add|sub)|fml[as]\b|vfn?m[as]\b)")
FUSED_SOURCE = re.compile(
    r"\b(?:fmaf?|fmal)\s*\(|_fn?m(?:add|sub)_|\bvfm[as]q?_|relaxed_n?madd|\bFP_CONTRACT\s+(?:ON|DEFAULT)\b|\bfast-?math\b"
    r"|__attribute__\s*\(\(\s*optimize|#\s*pragma\s+(?:GCC|clang)\s+(?:optimize|fp)\b"
)
# Every configuration: the names in the Makefile's lists.
LISTS = re.findall(r"^(?:natives|wasms) *:= (.*)$", text_of(Path("Makefile")), re.MULTILINE)
TARGETS = [f"build/{name}/libml.a" for names in LISTS for name in names.split()]
BUILD = os.environ.get("ML_BUILD", "native")
TOOLS = "aarch64-linux-gnu-" if BUILD == "arm64" else ""

# What the library may take from the C library: memory, bytes, threads, what the processor can do, and the exact
# floating-point operations.
ALLOWED_SYMBOLS = re.compile(
    r"mem(?:cpy|set|move|cmp|chr)|str(?:len|cmp|ncmp|chr)|malloc|calloc|free|qsort"
    r"|pthread_(?:create|join|mutex_\w+|cond_\w+|attr_\w+)|sched_yield|sqrtf?|fabsf?|__stack_chk_fail|__cpu_\w+|__aarch64_\w+|getauxval|_GLOBAL_OFFSET_TABLE_"
)


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def built_objects() -> list[Path]:
    """Of the build that ML_BUILD names: native, or arm64, which has tools of its own."""
    objects = [ROOT / "build" / BUILD / path.with_suffix(".o") for path in files_below("src", ".c")]
    built = [path for path in objects if path.exists() and "/src/wasm/" not in path.as_posix()]
    if not built:
        pytest.skip(f"build/{BUILD} is not built")
    return built


def compile_commands() -> list[str]:
    output = run("make", "-n", "V=1", "CFLAGS=", *TARGETS, "build/native/ml_run")
    return [line for line in output.splitlines() if re.search(r" -c -o \S+\.o ", line)]


def test_every_compile_command_forbids_contraction() -> None:
    commands = compile_commands()
    assert {"build/native/libml.a", "build/simd128/libml.a"} <= set(TARGETS)
    for target in TARGETS:
        assert any(f" -o {target.removesuffix('libml.a')}" in command for command in commands)
    for command in commands:
        assert "-ffp-contract=off" in command.split()
        assert not FAST_MATH.search(command), command


def test_only_the_file_of_an_instruction_set_is_compiled_for_it() -> None:
    """So that a machine without the set never meets one of its instructions."""
    for command in compile_commands():
        flags = re.findall(r" -m(?:avx|sse[34]|ssse|f16c|bmi|arch|relaxed)\S*", command)
        name = Path(command.split()[-1]).stem
        assert not flags or re.search(r"avx|neondot|relaxed", name), command


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-mfma", "-funsafe-math-optimizations"])
def test_make_refuses_a_flag_that_changes_results(flag: str) -> None:
    result = subprocess.run(["make", "-n", "native", f"CFLAGS=-g {flag}"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode != 0
    assert flag in result.stderr


def test_forbidden_flags_are_recognised() -> None:
    for flag in ("-ffast-math", "-Ofast", "-mfma", "-ffp-contract=fast", "-funsafe-math-optimizations"):
        assert FAST_MATH.search(f"cc {flag} -c x.c")
    assert not FAST_MATH.search("cc -O3 -mavx2 -ffp-contract=off -fno-math-errno")


@pytest.mark.parametrize("path", [*files_below("tools", ".sh"), *files_below("js"), *files_below("examples")], ids=str)
def test_no_script_builds_with_fast_math(path: Path) -> None:
    assert not FAST_MATH.search(text_of(path))


@pytest.mark.parametrize("path", files_below("src", ".c", ".h"), ids=str)
def test_source_does_not_ask_for_fusing(path: Path) -> None:
    assert [line for line in c_code(text_of(path)).splitlines() if FUSED_SOURCE.search(line)] == []


def test_native_code_holds_no_fused_instruction() -> None:
    for path in built_objects():
        fused = [line for line in run(f"{TOOLS}objdump", "-d", path).splitlines() if FUSED.search(line)]
        assert fused == [], path


def test_a_fused_instruction_is_recognised_in_native_code(tmp_path: Path) -> None:
    if TOOLS == "" and platform.machine() != "x86_64":
        pytest.skip("the planted instructions are those of x86 and, by a cross compiler, of AArch64")
    source = tmp_path / "fused.c"
    source.write_text(
        "float one(float a, float b, float c) { return a * b + c; }\n"
        "void many(float *a, const float *b) { for (int i = 0; i < 64; i++) a[i] = a[i] * b[i] + 1; }\n"
    )
    fma = ["-mfma"] if TOOLS == "" else []
    run(f"{TOOLS}gcc", "-O3", *fma, "-ffp-contract=fast", "-c", source, "-o", tmp_path / "fused.o")
    code = run(f"{TOOLS}objdump", "-d", tmp_path / "fused.o")
    for function in ("one", "many"):
        assert FUSED.search(code.partition(f"<{function}>:")[2].partition("\n\n")[0])


def undefined_symbols(*objects: Path) -> set[str]:
    """Symbols that the objects need from outside, with what the compiler may add to a name (sqrtf@GLIBC) cut off."""
    needed, defined = set(), set()
    for line in run(f"{TOOLS}nm", *objects).splitlines():
        if match := re.search(r"\b([A-Za-z]) (\S+)$", line):
            (needed if match[1] in "Uw" else defined).add(match[2].partition("@")[0])
    return needed - defined


def test_library_takes_only_what_is_allowed_from_the_platform() -> None:
    library = [path for path in built_objects() if "/src/cli/" not in path.as_posix()]
    needed = undefined_symbols(*library)
    assert "malloc" in needed
    asserts = set() if BUILD == "native" else {"__assert_fail"}
    assert sorted(name for name in needed - asserts if not ALLOWED_SYMBOLS.fullmatch(name)) == []


def test_a_symbol_forbidden_of_the_platform_is_recognised(tmp_path: Path) -> None:
    source = tmp_path / "libm.c"
    source.write_text("#include <math.h>\nfloat f(float x) { return expf(x); }\n")
    run(f"{TOOLS}gcc", "-O2", "-c", source, "-o", tmp_path / "libm.o")
    assert undefined_symbols(tmp_path / "libm.o") == {"expf"}
    assert not ALLOWED_SYMBOLS.fullmatch("expf")
