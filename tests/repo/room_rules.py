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


# JavaScript's rooms, from below: a file may import what stands before it, and what stands in its own line.
JS_LAYERS = (
    ("errors.js", "platform.js", "stops.js", "turns.js", "assets.js", "template_budget.js", "median.js", "logprobs.js"),
    ("options.js", "handles.js", "rpc.js", "digest.js", "manifest.js", "template.js", "answer.js", "builds.js"),
    ("heap.js", "timeline.js", "download.js", "chat.js"),
    ("thread.js", "cache.js", "source.js", "generation.js", "model.js"),
    ("load.js", "core.js"),
    ("service.js",),
    ("worker.js", "host.js"),
    ("index.js",),
    ("cli.js",),
)
JS_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]""")
JS_LIBRARIES = {"@huggingface/jinja": "template_budget.js", "hash-wasm": "digest.js"}


def js_import_problems(name: str, text: str) -> list[str]:
    """What is wrong with the imports of one file of js/."""
    layer_of = {file: layer for layer, files in enumerate(JS_LAYERS) for file in files}
    if name not in layer_of:
        return [f"js/{name} is in no layer of JS_LAYERS"]
    problems = []
    for target in JS_IMPORT.findall(re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)):
        if target in JS_LIBRARIES:
            if JS_LIBRARIES[target] != name:
                problems.append(f"js/{name} must not import {target}")
        elif target.removeprefix("./") not in layer_of or layer_of[target.removeprefix("./")] > layer_of[name]:
            problems.append(f"js/{name} must not import {target}")
    return problems
