#!/usr/bin/env python3
"""Converts a model to a package that krafla-web runs: weights (.mlb), tokenizer (.mlt) and model.json.

    python3 tools/convert.py SmolLM2-135M-Instruct smollm2
    python3 tools/convert.py Qwen3-0.6B qwen3-q4 --wtype q4_0 --mixed tok_emb,wv
    python3 tools/convert.py gemma-3-270m-it-Q4_0.gguf gemma3

SRC is a Hugging Face folder (config.json, safetensors in bfloat16, float16 or float32, in one file or in shards) or a
GGUF file (one or split), of the families Llama, Mistral, Qwen2, Qwen3, Qwen3.5, SmolLM3, Gemma 2 and Gemma 3.

GGUF blocks of Q8_0 and Q4_0 are kept as they are where the matrix is stored in the same type (or, Q4_0 in a Q8_0 model,
in a larger one); other types are decoded and quantized anew, which costs a little quality: convert from the original
weights where there is a choice. The report at the end says what happened to how many tensors.

Whatever cannot be expressed exactly, is missing, or is not understood ends the conversion with one line that names it;
then nothing is left in OUT_DIR.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import convert_tokenizer
import tokenizer_gguf
from checkpoint import Checkpoint, GgufCheckpoint, Planned, open_checkpoint
from checkpoint_errors import CheckpointError, one_line
from conversion import CLASSES, WTYPES, Report, choose_storage, convert_weights
from hf_map import UnsupportedModel
from importance_file import read_importance
from mlb import MlbError
from mlt import MltError, Tokenizer, write_tokenizer
from model_facts import Facts, facts_from_folder, facts_from_gguf
from model_package import (
    MODEL,
    TOKENIZER,
    check_tokenizer,
    describe,
    new_package,
    stop_ids,
    write_description,
)
from quant import QuantizeError
from tokenizer_json import SideFacts
from tokenizer_vocab import TokenizerError

FAILURES = (CheckpointError, UnsupportedModel, QuantizeError, MlbError, MltError, TokenizerError)

# Matrices that are worth more bits in a Q4_0 model: few weights, and errors in them reach everything.
DEFAULT_MIX = "tok_emb,wv"


def main(arguments: list[str] | None = None) -> int:
    """Converts one model and reports. A failure is one line on stderr, with exit status 1, and leaves nothing."""
    options = _parser().parse_args(arguments)
    try:
        _convert(options)
    except FAILURES as error:
        print(f"convert.py: {one_line(str(error))}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"convert.py: {error.filename or options.source}: {error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("convert.py: out of memory", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("convert.py: interrupted; nothing was written", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convert.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0 done, 1 refused, unreadable or unwritable, 2 wrong command line, 130 interrupted.",
    )
    parser.add_argument("source", metavar="SRC", type=Path, help="Hugging Face folder, or GGUF file (any part of it)")
    parser.add_argument("out", metavar="OUT_DIR", type=Path, help="the package: a new or empty folder")
    parser.add_argument("--force", action="store_true", help="replace the package that is in OUT_DIR")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar and no report")

    weights = parser.add_argument_group("weights")
    weights.add_argument(
        "--wtype",
        choices=["auto", *WTYPES],
        default="auto",
        help="type of the matrices; auto: q4_0 for a GGUF file that is mostly Q4_0, else q8_0",
    )
    weights.add_argument(
        "--mixed",
        metavar="CLASSES",
        help=f"matrices that a q4_0 model stores as q8_0: some of {','.join(CLASSES)}, or 'default' ({DEFAULT_MIX}), "
        "or 'none'; by default none, and with --wtype auto those that have more bits in the GGUF file",
    )
    weights.add_argument(
        "--scales", choices=["f16", "f32"], default="f16", help="type of the scales (f16: smaller; f32: any range)"
    )
    weights.add_argument(
        "--q4-rule",
        choices=["fit", "round"],
        help="how q4_0 is made: fit searches for the smallest error of each block, round is what models trained for "
        "Q4_0 expect; default fit, for Gemma 3 round",
    )
    weights.add_argument(
        "--imatrix", metavar="FILE", type=Path, help="importance of the channels, from ml_run --imatrix, for the fit"
    )
    weights.add_argument("--max-seq", metavar="N", type=int, help="longest context; default: the model's own")
    weights.add_argument(
        "--allow-unread", action="store_true", help="convert although some tensors of SRC have no place in the format"
    )

    package = parser.add_argument_group("package")
    package.add_argument("--no-tokenizer", action="store_true", help="leave the tokenizer out")
    package.add_argument("--name", help="name in model.json; default: what SRC calls itself")
    package.add_argument("--license", metavar="ID", help="licence in model.json; default: what SRC says")
    package.add_argument("--source-note", metavar="TEXT", help="where the model comes from, for model.json")
    return parser


def _convert(options: argparse.Namespace) -> None:
    checkpoint = open_checkpoint(options.source)
    planned = checkpoint.plan(max_seq=options.max_seq, allow_unread=options.allow_unread)
    mixed = {"default": DEFAULT_MIX, "none": ""}.get(options.mixed, options.mixed)
    choose_storage(checkpoint, planned, options.wtype, mixed, options.scales == "f16")
    rule = _q4_rule(options, checkpoint)
    importance = None
    if options.imatrix:
        importance = read_importance(options.imatrix, planned.header, planned.layer_flags)
    # All that is quick goes first, so that it fails first.
    tokenizer = None if options.no_tokenizer else _tokenizer(checkpoint)
    facts = _facts(checkpoint, options)
    if tokenizer:
        check_tokenizer(tokenizer, planned.header.vocab)
    stop_ids(facts, tokenizer, planned.header.vocab)
    with new_package(options.out, replace=options.force) as folder:
        if tokenizer:
            write_tokenizer(folder / TOKENIZER, tokenizer)
        report = convert_weights(
            checkpoint, planned, folder / MODEL, q4_rule=rule, importance=importance, quiet=options.quiet
        )
        family = checkpoint.config["model_type"]
        document = describe(folder, family, planned.header, tokenizer, facts)
        write_description(folder, document)
    if not options.quiet:
        _print_report(options.out, checkpoint, planned, report, document)


def _q4_rule(options: argparse.Namespace, checkpoint: Checkpoint) -> str:
    if options.imatrix and options.q4_rule == "round":
        raise CheckpointError("--imatrix weighs errors, which --q4-rule round does not look at")
    gemma3 = str(checkpoint.config["model_type"]).startswith("gemma3")
    return options.q4_rule or ("round" if gemma3 and not options.imatrix else "fit")


def _tokenizer(checkpoint: Checkpoint) -> Tokenizer | None:
    """The checkpoint's tokenizer, or None with a remark where there is none."""
    if isinstance(checkpoint, GgufCheckpoint):
        if "tokenizer.ggml.tokens" not in checkpoint.model.metadata:
            checkpoint.notes.append("no tokenizer in it: the package has none either")
            return None
        conversion = tokenizer_gguf.convert_fields(tokenizer_gguf.read_metadata(checkpoint.model.metadata), SideFacts())
    elif (checkpoint.path / "tokenizer.json").is_file():
        conversion = convert_tokenizer.convert_file(checkpoint.path)
    else:
        checkpoint.notes.append("no tokenizer.json beside it: the package has no tokenizer")
        return None
    checkpoint.notes += [f"tokenizer: {note}" for note in conversion.notes]
    return conversion.tokenizer


def _facts(checkpoint: Checkpoint, options: argparse.Namespace) -> Facts:
    if isinstance(checkpoint, GgufCheckpoint):
        facts = facts_from_gguf(checkpoint.model.metadata)
    else:
        facts = facts_from_folder(checkpoint.path, checkpoint.config)
    facts.name = options.name or facts.name
    facts.license = options.license or facts.license
    facts.source = options.source_note or facts.source
    return facts


def _print_report(out: Path, checkpoint: Checkpoint, planned: Planned, report: Report, document: dict) -> None:
    header = planned.header
    print(f"{out}: {document['name']}, from a {checkpoint.form}")
    print(f"  {header.n_layers} layers of {header.dim}, vocabulary {header.vocab}, context {header.max_seq}")
    for file in document["files"].values():
        print(f"  {file['name']:<14} {file['size']:>12} bytes  sha256 {file['sha256'][:16]}…")
    print("tensors")
    for line in report.lines():
        print(f"  {one_line(line)}")
    for note in checkpoint.notes:
        print(f"note: {one_line(note)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing half-made is left then, either
    sys.exit(main())
