"""From a checkpoint to an .mlb file: what becomes of each tensor, and a report of it.

Weights pass through one tensor at a time, as float32; at the most about twice the largest tensor is in memory. Blocks
of GGUF that the file can hold as they are (Q8_0, Q4_0) are moved there and nothing is lost.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from checkpoint import Checkpoint, Planned
from checkpoint_errors import CheckpointError
from gguf_blocks import as_q8_0, mend_minus_128
from gguf_transforms import move_blocks
from mlb import (
    MASK_O,
    MASK_QK,
    MASK_TOK_EMB,
    MASK_V,
    MASK_W2,
    MASK_W13,
    MASK_WCLS,
    Q4_0,
    Q8_0,
    TensorSpec,
    tensor_specs,
    write_model,
)
from quant import Quantized, QuantizeError

# The classes of matrices that a Q4_0 model may store as Q8_0, by the names of the command line.
CLASSES = {
    "tok_emb": MASK_TOK_EMB,
    "wcls": MASK_WCLS,
    "wqk": MASK_QK,
    "wv": MASK_V,
    "wo": MASK_O,
    "w13": MASK_W13,
    "w2": MASK_W2,
}
_CLASS_OF = {
    **{"tok_emb": "tok_emb", "wcls": "wcls", "w2": "w2"},
    **dict.fromkeys(("wq", "wk", "wg", "lqkv"), "wqk"),
    **dict.fromkeys(("wv", "lz"), "wv"),
    **dict.fromkeys(("wo", "lout"), "wo"),
    **dict.fromkeys(("w1", "w3"), "w13"),
}
WTYPES = {"q8_0": Q8_0, "q4_0": Q4_0}


@dataclass
class Report:
    """What happened to how many tensors. Keys: stored type, type in the file, how it got there."""

    tensors: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)  # blocks with the quant -128, by tensor

    def lines(self) -> list[str]:
        lines = [f"{n:>6} x {a:<8} -> {b:<5} {how}" for (a, b, how), n in sorted(self.tensors.items())]
        if self.mended:
            blocks = sum(self.mended.values())
            lines.append(
                f"{blocks} blocks held the quant -128, which the format has not, and were quantized anew: "
                + ", ".join(f"{name} ({count})" for name, count in self.mended.items())
            )
        return lines


def choose_storage(checkpoint: Checkpoint, planned: Planned, wtype: str, classes: str | None, scale_f16: bool) -> None:
    """Sets wtype, q8_mask and scale_f16 of the header. Raises CheckpointError.

    wtype: a key of WTYPES, or "auto": Q8_0, but for a GGUF file of Q4_0 the same, with those classes of matrices as
    Q8_0 that are stored with more bits there. classes: names of CLASSES with commas between, or None.
    """
    if wtype == "auto":
        wtype, stored_larger = _like_source(checkpoint, planned)
        classes = stored_larger if classes is None else classes
    mask = _mask(classes) if classes else 0
    if mask and wtype != "q4_0":
        raise CheckpointError("--mixed says which matrices of a Q4_0 model are stored as Q8_0; it needs --wtype q4_0")
    planned.header = replace(planned.header, wtype=WTYPES[wtype], q8_mask=mask, scale_f16=int(scale_f16))


def _mask(classes: str) -> int:
    mask = 0
    for name in classes.split(","):
        if name not in CLASSES:
            raise CheckpointError(f"--mixed: {name!r} is none of {', '.join(CLASSES)}")
        mask |= CLASSES[name]
    return mask


def _like_source(checkpoint: Checkpoint, planned: Planned) -> tuple[str, str]:
    """The wtype that is closest to how the matrices are stored now, and the classes that have more bits than Q4_0."""
    types: dict[str, set[str]] = {}
    counted: Counter[bool] = Counter()
    for name, source in planned.sources.items():
        matrices = _CLASS_OF.get(name.rsplit(".", 1)[-1])
        if matrices:
            stored = checkpoint.type_of(source.tensor)
            types.setdefault(matrices, set()).add(stored)
            counted[stored == "Q4_0"] += 1
    if counted[True] <= counted[False]:
        return "q8_0", ""
    return "q4_0", ",".join(name for name in CLASSES if types.get(name, {"Q4_0"}) != {"Q4_0"})


def convert_weights(
    checkpoint: Checkpoint,
    planned: Planned,
    path: Path,
    *,
    q4_rule: str = "fit",
    importance: Mapping[str, np.ndarray] | None = None,
    quiet: bool = False,
) -> Report:
    """Writes the .mlb file, with a progress bar on a terminal.

    importance: sums of squares by array name, see importance_file.py. Raises QuantizeError, CheckpointError, MlbError,
    OSError.
    """
    report = Report()
    specs = tensor_specs(planned.header, planned.layer_flags)
    with tqdm(
        total=sum(spec.rows * spec.cols for spec in specs),
        unit="w",
        unit_scale=True,
        file=sys.stderr,
        disable=True if quiet else None,  # None: only on a terminal
    ) as bar:

        def provide(spec: TensorSpec) -> np.ndarray | Quantized:
            bar.set_description(spec.name, refresh=False)
            weights = _weights(checkpoint, planned, spec, report)
            bar.update(spec.rows * spec.cols)
            return weights

        try:
            write_model(path, planned.header, planned.layer_flags, provide, q4_rule=q4_rule, importance=importance)
        except QuantizeError as error:
            raise QuantizeError(f"{_with_source(str(error), planned)}") from None
    return report


def _weights(checkpoint: Checkpoint, planned: Planned, spec: TensorSpec, report: Report) -> np.ndarray | Quantized:
    """One array's weights, blocks where they can stay, else float32."""
    source = planned.sources[spec.name]
    stored = checkpoint.type_of(source.tensor)
    weights = checkpoint.read(source.tensor)
    if isinstance(weights, Quantized):
        carried = _carried(weights, spec, source.tensor, source.steps, report)
        if carried is not None:
            report.tensors[stored, spec.kind, "block by block"] += 1
            return carried
        weights = weights.dequantize()
    report.tensors[stored, spec.kind, _how(stored, spec)] += 1
    return source.apply(weights)


def _how(stored: str, spec: TensorSpec) -> str:
    is_float = stored in ("F64", "F32", "F16", "BF16")
    if spec.kind == "f32":
        return "as it is" if is_float else "decoded"
    return "quantized" if is_float else "decoded and quantized anew"


def _carried(weights: Quantized, spec: TensorSpec, tensor: str, steps: tuple, report: Report) -> Quantized | None:
    """The blocks in the order of the file, or None if it cannot hold them."""
    if weights.kind == "q4_0" and spec.kind == "q8_0":
        weights = as_q8_0(weights)
    if weights.kind != spec.kind:
        return None
    if weights.kind == "q8_0" and (blocks := mend_minus_128(weights)):
        report.mended[tensor] += blocks
    return move_blocks(steps, weights)


def _with_source(message: str, planned: Planned) -> str:
    """The writer names arrays of the file; people know the checkpoint's tensors."""
    array, _, rest = message.partition(": ")
    source = planned.sources.get(array)
    return f"{source.tensor} ({array}): {rest}" if source else message
