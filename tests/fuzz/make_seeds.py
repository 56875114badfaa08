"""Writes the inputs that fuzzing begins with: every tiny model for fuzz_model, and a few importance matrix files.

python3 tests/fuzz/make_seeds.py FOLDER     FOLDER/fuzz_model/*, FOLDER/fuzz_imatrix/*
"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tiny import FEATURES, write_tiny

WHOLE = struct.pack("<HBB", 0xFFFF, 0, 0)  # fuzz_model.c: large chunks, no failing allocation, default options
PIECES = struct.pack("<HBB", 6, 3, 3)


def write_models(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, feature in enumerate(FEATURES):
        path = folder / feature
        write_tiny(path, feature)
        with path.open("ab") as file:
            file.write(PIECES if number % 4 == 0 else WHOLE)


def write_matrices(folder: Path) -> None:
    """Version 1 without linear layers: header of 40 bytes, then the sums."""
    folder.mkdir(parents=True, exist_ok=True)
    for layers, dim, hidden in ((1, 32, 32), (2, 32, 64)):
        header = struct.pack("<4sIIIIIQQ", b"MLI1", 1, layers, dim, hidden, dim, 7, 7)
        sums = struct.pack("<d", 0.5) * (layers * (3 * dim + hidden) + dim)
        (folder / f"matrix-{layers}").write_bytes(header + sums)


if __name__ == "__main__":
    write_models(Path(sys.argv[1], "fuzz_model"))
    write_matrices(Path(sys.argv[1], "fuzz_imatrix"))
