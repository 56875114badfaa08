"""The Makefile rebuilds what has to be rebuilt, and nothing else: tried on a small copy of the project."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from repo_files import ROOT, text_of

SOURCES = {
    "src/ml.h": "int ml_one(void);\nint ml_two(void);\n",
    "src/base/one.h": "#define ONE 1\n",
    "src/base/one.c": '#include "base/one.h"\n#include "ml.h"\nint ml_one(void) { return ONE; }\n',
    "src/model/two.c": '#include "ml.h"\nint ml_two(void) { return 2; }\n',
    "src/cli/ml_run.c": '#include "ml.h"\nint main(void) { return ml_one() - 1; }\n',
    "tests/unit/test_one.c": '#include "ml.h"\nint main(void) { return ml_two() - 2; }\n',
}


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(ROOT / "Makefile", folder)
        for name, text in SOURCES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def make(self, *arguments: str) -> list[str]:
        """What `make` announced, for example "CC build/native/src/base/one.o"."""
        environment = {
            k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "V", "CFLAGS")
        }
        command = ["make", "-j2", *arguments]
        result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
        return sorted(" ".join(line.split()) for line in result.stdout.splitlines() if line.startswith("  "))

    def touch(self, name: str) -> None:
        """Makes a file newer than all that was built, whatever the resolution of the file system's clock."""
        newest = max(path.stat().st_mtime_ns for path in self.folder.rglob("*")) + 10**9
        os.utime(self.folder / name, ns=(newest, newest))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_second_build_does_nothing(project: Project) -> None:
    assert "LINK build/native/ml_run" in project.make("native")
    assert project.make("native") == []


def test_header_rebuilds_its_users(project: Project) -> None:
    project.make("native")
    project.touch("src/base/one.h")
    assert project.make("native") == [
        "AR build/native/libml.a",
        "CC build/native/src/base/one.o",
        "LINK build/native/ml_run",
    ]


def test_flags_rebuild_and_configurations_do_not_mix(project: Project) -> None:
    project.make("native", "build/asan/test_unit")
    rebuilt = project.make("native", "CFLAGS=-g")
    assert [line for line in rebuilt if line.startswith("CC")] == [
        "CC build/native/src/base/one.o",
        "CC build/native/src/cli/ml_run.o",
        "CC build/native/src/model/two.o",
    ]
    assert project.make("native", "CFLAGS=-g") == []
    assert project.make("build/asan/test_unit") == []


def test_removed_source_leaves_the_library(project: Project) -> None:
    project.make("native")
    (project.folder / "src/model/two.c").unlink()
    assert project.make("native") == ["AR build/native/libml.a", "LINK build/native/ml_run"]
    members = subprocess.run(["ar", "t", "build/native/libml.a"], cwd=project.folder, capture_output=True, text=True)
    assert members.stdout.split() == ["one.o"]


def test_warnings_are_errors_in_src(project: Project) -> None:
    (project.folder / "src/base/one.c").write_text("int ml_one(void) { return 1; }\n")  # no prototype
    with pytest.raises(AssertionError, match="missing-prototypes"):
        project.make("native")
    project.make("native", "WERROR=")


def test_verbose_build_shows_commands(project: Project) -> None:
    result = subprocess.run(["make", "native", "V=1"], cwd=project.folder, capture_output=True, text=True, check=True)
    assert re.search(r"^cc .* -c -o build/native/src/base/one\.o src/base/one\.c$", result.stdout, re.MULTILINE)


def test_help_lists_every_public_target() -> None:
    public = re.findall(r"^([a-z][a-z-]*):.*## ", text_of(Path("Makefile")), re.MULTILINE)
    output = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make ([a-z-]+) ", output, re.MULTILINE) == public
    assert {"help", "native", "demo", "check", "test", "clean"} <= set(public)
