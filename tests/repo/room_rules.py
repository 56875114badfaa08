"""The dependency law of src/ (docs/ARCHITECTURE.md): which room may include which.

    base <- format <- model <- forward <- engine.c <- cli, wasm      (cli and wasm through ml.h alone)
    base <- kernels <- model, forward, sample
    base, format <- text <- engine.c
    sample <- engine.c

An arrow is also open through the rooms between: forward may include base. Everyone may include ml.h and its own room.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

# Room -> the rooms directly below it.
BELOW = {
    "base": (),
    "format": ("base",),
    "kernels": ("base",),
    "model": ("format", "kernels"),
    "forward": ("model", "kernels"),
    "sample": ("kernels",),
    "text": ("base", "format"),
    "engine": ("forward", "sample", "text"),
    "cli": (),
    "wasm": (),
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)


def room_of(path: PurePosixPath | Path) -> str:
    """The room of a file below src/: its folder, or its stem at the top (engine.c, ml.h)."""
    parts = path.parts[1:]
    return parts[0] if len(parts) > 1 else PurePosixPath(parts[0]).stem


def reachable(room: str) -> set[str]:
    """The room itself and all rooms below it."""
    rooms = {room}
    for below in BELOW[room]:
        rooms |= reachable(below)
    return rooms


def include_problems(path: Path, code: str, known: Iterable[Path]) -> list[str]:
    """What is wrong with the includes of one file below src/. `code` is free of comments, `known` are all files."""
    known = set(known)
    room = room_of(path)
    if room == "ml":
        return [f"{path}: the public header includes {name}" for name in INCLUDE.findall(code)]
    if room not in BELOW:
        return [f"{path}: {room} is not a room of src/"]
    problems = []
    for name in INCLUDE.findall(code):
        target = next((t for t in (path.parent / name, Path("src") / name) if t in known), None)
        if target is None:
            problems.append(f"{path}: {name} is no file of src/")
        elif room_of(target) != "ml" and room_of(target) not in reachable(room):
            problems.append(f"{path}: {room} must not include {target}")
    return problems


def import_problems(path: Path, text: str, test_modules: Iterable[str]) -> list[str]:
    """Tools never import from tests: what is wrong with the imports of one Python file below tools/."""
    forbidden = {"tests", "conftest", *test_modules}
    return [
        f"{path}: a tool must not import {name}" for name in IMPORT.findall(text) if name.partition(".")[0] in forbidden
    ]
