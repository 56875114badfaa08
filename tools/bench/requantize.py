#!/usr/bin/env python3
"""Writes the same weights as GGUF and as .mlb: every matrix of a GGUF file decoded and quantized anew, to one type.

    python3 tools/bench/requantize.py build/models/smollm2-135m.gguf q4_0 build/bench/models/smollm2-135m-q4_0

makes OUT.gguf, and from that OUT/ (model.mlb, tokenizer.mlt) with convert.py, which moves blocks of these types as they
are. Q4_0 is llama.cpp's own (`--q4-rule round` of convert.py). Does nothing when both are newer than SRC.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gguf

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import convert

TYPES = {"q4_0": gguf.GGMLQuantizationType.Q4_0, "q8_0": gguf.GGMLQuantizationType.Q8_0}
FILE_TYPES = {"q4_0": gguf.LlamaFileType.MOSTLY_Q4_0, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
WRITERS_OWN = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SRC", type=Path, help="a GGUF file of any types that gguf can decode")
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("out", metavar="OUT", type=Path)
    options = parser.parse_args()
    model, package = options.out.with_name(options.out.name + ".gguf"), options.out
    if not _is_newer(model, options.source):
        model.parent.mkdir(parents=True, exist_ok=True)
        requantize(options.source, options.type, model)
    if _is_newer(package / "model.json", model):
        return 0
    mixed = ["--mixed", "none"] if options.type == "q4_0" else []
    return convert.main([str(model), str(package), "--force", "--quiet", "--wtype", options.type, *mixed])


def _is_newer(file: Path, source: Path) -> bool:
    return file.exists() and file.stat().st_mtime >= source.stat().st_mtime


def requantize(source: Path, type_: str, target: Path) -> None:
    """All metadata of `source`, and its tensors: vectors in float32, matrices in `type_`."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    partial = target.with_suffix(".tmp")
    writer = gguf.GGUFWriter(partial, architecture)
    for field in reader.fields.values():
        if not field.name.startswith(WRITERS_OWN):
            element = field.types[1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=element)
    writer.add_file_type(FILE_TYPES[type_])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if weights.ndim < 2:
            writer.add_tensor(tensor.name, weights)
        else:
            quants = gguf.quants.quantize(weights, TYPES[type_])
            writer.add_tensor(tensor.name, quants, raw_dtype=TYPES[type_])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.replace(target)


if __name__ == "__main__":
    sys.exit(main())
