"""Who may include whom, in src/ and between tools and tests."""

from pathlib import Path

import pytest
from repo_files import c_code, files_below, text_of
from room_rules import BELOW, JS_LAYERS, import_problems, include_problems, js_import_problems

SOURCES = files_below("src", ".c", ".h")
TOOLS = files_below("tools", ".py")
TEST_MODULES = [path.stem for path in files_below("tests", ".py")]

PLANTED = [Path(name) for name in ("src/ml.h", "src/base/bytes.h", "src/model/model.h", "src/cli/options.h")]


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_includes_follow_the_rooms(path: Path) -> None:
    assert include_problems(path, c_code(text_of(path)), SOURCES) == []


@pytest.mark.parametrize("path", TOOLS, ids=str)
def test_tools_do_not_import_tests(path: Path) -> None:
    assert import_problems(path, text_of(path), TEST_MODULES) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("src/base/arena.c", '#include "model/model.h"'),
        ("src/kernels/scalar.c", '# include "model/model.h"'),
        ("src/format/mlb.c", '#include "../model/model.h"'),
        ("src/cli/ml_run.c", '#include "base/bytes.h"'),
        ("src/wasm/exports.c", '#include "cli/options.h"'),
        ("src/engine.c", '#include "cli/options.h"'),
        ("src/model/bind.c", '#include "missing.h"'),
        ("src/helpers/any.c", '#include "ml.h"'),
        ("src/ml.h", '#include "base/bytes.h"'),
    ],
)
def test_a_wrong_include_is_caught(path: str, code: str) -> None:
    assert len(include_problems(Path(path), f"int x;\n  {code}\n", PLANTED)) == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("src/forward/ffn.c", '#include "base/bytes.h"\n#include "model/model.h"\n#include "ml.h"'),
        ("src/cli/ml_run.c", '#include "ml.h"\n#include "options.h"\n#include "cli/options.h"'),
        ("src/engine.c", '#include <string.h>\n#include "model/model.h"'),
        ("src/base/arena.c", c_code('/* #include "model/model.h" */ const char *s = "#include";')),
    ],
)
def test_a_right_include_passes(path: str, code: str) -> None:
    assert include_problems(Path(path), code, PLANTED) == []


@pytest.mark.parametrize("line", ["from conftest import ROOT", "import tests.oracle", "    import oracle_case"])
def test_a_wrong_import_is_caught(line: str) -> None:
    assert len(import_problems(Path("tools/mlb.py"), f"import re\n{line}\n", ["oracle_case"])) == 1


JS_FILES = [path for path in files_below("js", ".js") if len(path.parts) == 2]


@pytest.mark.parametrize("path", JS_FILES, ids=str)
def test_imports_of_javascript_go_down(path: Path) -> None:
    assert js_import_problems(path.name, text_of(path)) == []


def test_every_layer_of_javascript_is_there() -> None:
    assert {name for layer in JS_LAYERS for name in layer} == {path.name for path in JS_FILES}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("heap.js", "import { Core } from './core.js';"),
        ("model.js", "export * from './index.js';"),
        ("core.js", "const s = await import('./service.js');"),
        ("host.js", "import fs from 'node:fs';"),
        ("chat.js", 'import { Template } from "@huggingface/jinja";'),
        ("other.js", ""),
    ],
)
def test_a_wrong_import_of_javascript_is_caught(name: str, code: str) -> None:
    assert len(js_import_problems(name, code)) == 1


def test_every_folder_of_src_is_a_known_room() -> None:
    rooms = {path.parts[1] for path in SOURCES if len(path.parts) > 2}
    assert rooms <= set(BELOW)
    assert len(rooms) > 1
