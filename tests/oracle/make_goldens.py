#!/usr/bin/env python3
"""Makes tests/golden anew: tiny models of every family, prompts, and the logits that transformers gives in float64.

    build/venv-hf/bin/python tests/oracle/make_goldens.py          (make goldens)
    build/venv-hf/bin/python tests/oracle/make_goldens.py --check  exit code 1 if the stored ones differ

The same versions of transformers and torch give the same models to the bit and the same logits to float32 rounding.
Look at what changed before committing: a golden that moved without a reason is a finding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from oracle.families import CASES, Case  # noqa: E402
from oracle.hugging_face import config_of, load_mlb, logits, prompt, random_model, write_mlb  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
SEED = 11
LIMIT = 3_000_000  # bytes of the whole folder


def make(name: str, case: Case, folder: Path) -> dict[str, Any]:
    """Writes <name>.mlb and <name>.npz; returns what the manifest says of them."""
    config = config_of(case)
    model = random_model(config, SEED)
    mlb = write_mlb(model, config, case, folder / f"{name}.mlb")
    load_mlb(model, config, mlb)
    tokens = prompt(config, case.prompt, SEED)
    np.savez_compressed(
        folder / f"{name}.npz",
        ids=np.array(tokens, np.int32),
        logits=logits(model, tokens).astype(np.float32),
    )
    return {
        "model_sha256": hashlib.sha256((folder / f"{name}.mlb").read_bytes()).hexdigest(),
        "model_type": config["model_type"],
        "config": case.config,
        "storage": dict(case.storage),
    }


def make_all(folder: Path) -> None:
    """Writes every golden and the manifest."""
    goldens = {name: make(name, case, folder) for name, case in CASES.items() if case.golden}
    manifest = {
        "made_by": "tests/oracle/make_goldens.py",
        "seed": SEED,
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]},
        "reference": "transformers in float64, eager attention, weights as dequantized from the .mlb file",
        "goldens": goldens,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(goldens)} goldens, {size / 1e6:.2f} MB")
    if size > LIMIT:
        raise SystemExit(f"the goldens take {size} bytes, more than {LIMIT}")


def differences(new: Path, stored: Path) -> list[str]:
    """One line for each file that is in one folder only, or says something else in the other."""
    found = []
    names = {path.name for folder in (new, stored) for path in folder.iterdir() if path.suffix in (".mlb", ".npz")}
    for name in sorted(names):
        a, b = new / name, stored / name
        if not (a.exists() and b.exists()):
            found.append(f"{name}: {'not stored' if a.exists() else 'no longer made'}")
        elif name.endswith(".mlb"):
            if a.read_bytes() != b.read_bytes():
                found.append(f"{name}: another model")
        else:
            before, after = np.load(b), np.load(a)
            if not np.array_equal(before["ids"], after["ids"]):
                found.append(f"{name}: other prompt")
            elif not np.allclose(before["logits"], after["logits"], rtol=1e-6, atol=1e-6):
                found.append(f"{name}: logits differ by {np.abs(before['logits'] - after['logits']).max():.3g}")
    return found


def main() -> int:
    """Writes into a new folder first, so that a failure leaves the stored goldens as they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the stored goldens, write nothing")
    arguments = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        made = Path(folder)
        make_all(made)
        found = differences(made, GOLDEN)
        print("\n".join(found) or "the stored goldens are the same")
        if arguments.check:
            return int(bool(found))
        for pattern in ("*.mlb", "*.npz", "manifest.json"):
            for old in GOLDEN.glob(pattern):
                if not (made / old.name).exists():
                    old.unlink()
            for path in made.glob(pattern):
                path.replace(GOLDEN / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
