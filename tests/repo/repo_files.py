"""Reads the checkout for the tests of this folder: its files, and C source without comments and literals."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

C_TOKEN = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' """, re.DOTALL | re.VERBOSE)


@cache
def project_files() -> tuple[Path, ...]:
    """Files of the project, relative to its root: what git tracks, and what it would track after `git add`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(sorted({Path(name) for name in names if name and (ROOT / name).is_file()}))


def files_below(folder: str, *suffixes: str) -> list[Path]:
    """Project files in a folder, at any depth, with one of the suffixes (all when none is given)."""
    return [
        path for path in project_files() if path.is_relative_to(folder) and (not suffixes or path.suffix in suffixes)
    ]


def text_of(path: Path) -> str:
    """Content of a text file; empty for a binary one."""
    content = (ROOT / path).read_bytes()
    return "" if b"\0" in content else content.decode("utf-8")


def c_code(text: str) -> str:
    """C source with comments and the inside of literals blanked out, line numbers unchanged. Include lines keep
    their file names."""

    def blank(token: re.Match[str]) -> str:
        if token[0][0] == '"' and re.search(r"#\s*include\s*$", text[: token.start()].rsplit("\n", 1)[-1]):
            return token[0]
        return re.sub(r"[^\n]", " ", token[0])

    return C_TOKEN.sub(blank, text)
