"""Documents that lie: links to files that are gone, and `make` commands that do not exist."""

import re
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT, project_files, text_of

DOCUMENTS = [path for path in project_files() if path.suffix == ".md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
MENTION = re.compile(r"\b(?:docs/[A-Za-z-]+\.md|tests/[a-z]+/\w+\.(?:py|c|h)|tools/[\w-]+\.(?:py|sh))\b")
MAKE = re.compile(r"\bmake ([a-z][a-z-]*)\b(?!/)")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", text_of(Path("Makefile")), re.MULTILINE))


@pytest.mark.parametrize("path", DOCUMENTS, ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    links = [link for link in LINK.findall(text_of(path)) if "://" not in link]
    assert [link for link in links if not (ROOT / path.parent / link).exists()] == []


@pytest.mark.parametrize("path", [*DOCUMENTS, Path(".ci/run"), Path("Makefile")], ids=str)
def test_make_targets_exist(path: Path) -> None:
    code = re.findall(r"`([^`]+)`|^ {4}(.*)$|^make .*$", text_of(path), re.MULTILINE)
    commands = [command for pair in code for command in MAKE.findall(" ".join(pair))]
    assert [target for target in commands if target not in TARGETS] == []


# Not those of this folder, which plant files in scratch folders.
TEXTS = [
    path
    for path in project_files()
    if (path.suffix in (".md", ".c", ".h", ".py", ".sh") or path.name == "Makefile")
    and path.parts[:2] != ("tests", "repo")
]


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_files_that_are_mentioned_exist(path: Path) -> None:
    assert [name for name in MENTION.findall(text_of(path)) if not (ROOT / name).exists()] == []


C_BLOCKS = [
    pytest.param(block, id=f"{path}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.findall(r"^```c\n(.*?)^```", text_of(path), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("block", C_BLOCKS)
def test_c_examples_compile(block: str, tmp_path: Path) -> None:
    (tmp_path / "example.c").write_text(block)
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Isrc", "-Itests/unit", "-fsyntax-only"]
    result = subprocess.run([*command, tmp_path / "example.c"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
