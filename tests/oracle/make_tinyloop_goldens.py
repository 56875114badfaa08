#!/usr/bin/env python3
"""Makes tests/golden/tinyloop anew: small looped models, a prompt, and their logits by the torch module in float64.

    build/venv-hf/bin/python tests/oracle/make_tinyloop_goldens.py    (make goldens)

Look at what changed before committing: a golden that moved without a reason is a finding.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from tinyloop import random_weights, read_model, write_weights  # noqa: E402
from tinyloop_layout import Header  # noqa: E402
from tinyloop_torch import from_weights  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "tinyloop"
N_IDS = 24
# A seed for each, so that no activation lies so near the edge between two quants that float32 and float64 part there.
BASE = Header(3, 96, 3, 192, 61, 32, 1, 2, 4, 32)  # three heads of 32
CASES = {
    "v1-int4-factored": (8, replace(BASE, version=1)),
    "v2-int2-direct": (
        5,
        replace(BASE, version=2, bits=2, embed_factor_dim=0, n_pre_blocks=0, default_loops=3),
    ),
    "v3-int4-direct": (8, replace(BASE, embed_factor_dim=0, group_size=96, n_heads=8)),
    "v3-int2-factored": (
        8,
        replace(BASE, bits=2, group_size=96, embed_factor_dim=64, n_pre_blocks=2, vocab_size=70),
    ),
}


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    goldens = {}
    for name, (seed, header) in CASES.items():
        path = GOLDEN / f"{name}.tinyloop"
        write_weights(path, header, random_weights(header, seed))
        ids = np.random.default_rng(seed).integers(0, header.vocab_size, N_IDS)
        module = from_weights(header, read_model(path).weights())
        runs = {}
        for loops in (1, header.default_loops, 2 * header.default_loops):
            with torch.no_grad():
                runs[f"loops_{loops}"] = module(torch.tensor(ids[None]), loops)[0].numpy().astype(np.float32)
        np.savez_compressed(GOLDEN / f"{name}.npz", ids=ids.astype(np.int32), **runs)
        goldens[name] = {"seed": seed, "model_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    manifest = {
        "made_by": "tests/oracle/make_tinyloop_goldens.py",
        "versions": {"torch": torch.__version__.split("+")[0], "numpy": np.__version__},
        "reference": "tools/tinyloop_torch.py in float64, weights as dequantized from the .tinyloop file",
        "goldens": goldens,
    }
    (GOLDEN / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main()
