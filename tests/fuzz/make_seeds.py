"""Writes the inputs that fuzzing begins with: a small model for each feature, and a few importance matrix files.

python3 tests/fuzz/make_seeds.py FOLDER     FOLDER/fuzz_mlb/*, fuzz_step/*, fuzz_tinyloop/*, fuzz_imatrix/*
"""

import struct
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from mlb import OK, Header, validate, write_model
from tiny import FEATURES, make_tiny
from tinyloop import random_weights, write_weights
from tinyloop_layout import Header as LoopHeader

# Control bytes (fuzz_file.h): chunk size - 1, failing allocation, options.
CONTROLS = [struct.pack("<HBB", *control) for control in ((0xFFFF, 0, 0), (6, 0, 35), (63, 3, 64), (0xFFFF, 0, 106))]


def shrink(header: Header, layer_flags: bytes | None) -> tuple[Header, bytes | None]:
    """The same feature in a file that is quick to mutate: one layer of each kind, 5 tokens, smallest matrices."""
    if layer_flags is not None:
        layer_flags = bytes(sorted(set(layer_flags)))
    small = replace(header, n_layers=len(layer_flags or b"0"), vocab=5, hidden_dim=32)
    narrow = replace(small, dim=32)
    return (narrow if validate(narrow, layer_flags, None)[0] == OK else small), layer_flags


def write_models(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, feature in enumerate(FEATURES):
        path = folder / feature
        tiny = make_tiny(feature)
        write_model(path, *shrink(tiny.header, tiny.layer_flags), tiny.provide)
        with path.open("ab") as file:
            file.write(CONTROLS[number % len(CONTROLS)])


def write_loops(folder: Path) -> None:
    """Every version, both widths, factored and direct."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (version, bits, factor, pre) in enumerate(((1, 4, 32, 0), (2, 2, 0, 1), (3, 2, 64, 0), (3, 4, 0, 0))):
        path = folder / f"v{version}-int{bits}-e{factor}"
        header = LoopHeader(version, 32, 2, 32, 5, factor, pre, 2, bits, 32)
        write_weights(path, header, random_weights(header))
        with path.open("ab") as file:
            file.write(CONTROLS[number])


def write_matrices(folder: Path) -> None:
    """Version 1 and, with the sums of one linear layer, version 2."""
    folder.mkdir(parents=True, exist_ok=True)
    for layers, dim, hidden, linear in ((1, 32, 32, 0), (2, 4, 6, 0), (2, 4, 6, 12)):
        header = struct.pack("<4sIIIIIQQ", b"MLI1", 2 if linear else 1, layers, dim, hidden, 0, 7, 7)
        n_sums = layers * (3 * dim + hidden) + dim
        if linear:
            header += struct.pack("<II", linear, 0)
            n_sums += linear - dim
        (folder / f"matrix-{layers}-{dim}-{linear}").write_bytes(header + struct.pack("<d", 0.5) * n_sums)


if __name__ == "__main__":
    write_models(Path(sys.argv[1], "fuzz_mlb"))
    write_models(Path(sys.argv[1], "fuzz_step"))
    write_loops(Path(sys.argv[1], "fuzz_tinyloop"))
    write_matrices(Path(sys.argv[1], "fuzz_imatrix"))
