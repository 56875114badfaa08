"""The house style, applied by machines: `make format` mends what these tests find."""

import re
import shutil
import subprocess
import sys

import pytest
from repo_files import ROOT, project_files

C_FILES = [path for path in project_files() if path.suffix in (".c", ".h")]
CLANG_FORMAT = shutil.which("clang-format-19") or shutil.which("clang-format")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_c_is_formatted() -> None:
    if CLANG_FORMAT is None:
        pytest.skip("no clang-format")
    version = run(CLANG_FORMAT, "--version").stdout
    if not re.search(r"version 19\.", version):
        pytest.skip(f"other versions than 19 format differently: {version.strip()}")
    result = run(CLANG_FORMAT, "--dry-run", "-Werror", *map(str, C_FILES))
    assert sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.MULTILINE))) == [], "run `make format`"
    assert result.returncode == 0, result.stderr


def test_python_is_clean() -> None:
    result = run(sys.executable, "-m", "ruff", "check", "--quiet", "--output-format=concise", "tools", "tests")
    assert result.returncode == 0, result.stdout + result.stderr


def test_python_is_formatted() -> None:
    result = run(sys.executable, "-m", "ruff", "format", "--check", "--output-format=concise", "tools", "tests")
    assert result.returncode == 0, f"run `make format`\n{result.stdout}{result.stderr}"


def node_tool(name: str) -> str:
    tool = ROOT / "node_modules/.bin" / name
    if not tool.exists() or shutil.which("node") is None:
        pytest.skip(f"no {name} (tools/setup-npm.sh)")
    return str(tool)


JAVASCRIPT = ("js", "web", "tests/js", "tests/browser")
JAVASCRIPT_FILES = ("examples/*.{mjs,html}", "tools/**/*.{js,mjs}")


def test_javascript_is_formatted() -> None:
    result = run(node_tool("prettier"), "--check", "--log-level", "warn", *JAVASCRIPT, *JAVASCRIPT_FILES)
    assert result.returncode == 0, f"run `make format`\n{result.stdout}{result.stderr}"


def test_javascript_is_clean() -> None:
    result = run(node_tool("eslint"), "-c", "tools/eslint.config.js", *JAVASCRIPT, "examples/*.mjs", "tools")
    assert result.returncode == 0, result.stdout + result.stderr
