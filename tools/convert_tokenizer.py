#!/usr/bin/env python3
"""Converts a tokenizer to .mlt: from a Hugging Face tokenizer.json, or from the metadata of a GGUF file.

    python3 tools/convert_tokenizer.py model-folder -o model.mlt
    python3 tools/convert_tokenizer.py tokenizer.json --eos '<|eot_id|>' -o model.mlt
    python3 tools/convert_tokenizer.py model.gguf -o model.mlt

Beside tokenizer.json, tokenizer_config.json is read for bos_token, eos_token and add_bos_token, and, where it names
no eos_token, generation_config.json and config.json for the first eos_token_id. The conversion is exact or refused:
what the format cannot say (Unigram, WordPiece, other patterns, ...) ends in one line that names it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import mlt
from tokenizer_gguf import convert_gguf
from tokenizer_json import Conversion, SideFacts, convert_json
from tokenizer_vocab import TokenizerError

ID_FILES = ("generation_config.json", "config.json")


def convert_file(path: Path, wishes: SideFacts | None = None) -> Conversion:
    """Converts a folder with a tokenizer.json, such a file, or a .gguf file; `wishes` win over what the files say.

    Raises TokenizerError, one line, for what cannot be converted, OSError for what cannot be read.
    """
    wishes = wishes or SideFacts()
    if path.suffix == ".gguf":
        return convert_gguf(path, wishes)
    if path.is_dir():
        path = path / "tokenizer.json"
    document = _read_json(path)
    return convert_json(document, _side_facts(path.parent, document, wishes))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{path.name} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise TokenizerError(f"{path.name} is not a JSON object")
    return document


def _side_facts(folder: Path, document: dict[str, Any], wishes: SideFacts) -> SideFacts:
    """What the files beside tokenizer.json say, where `wishes` say nothing."""
    config_path = folder / "tokenizer_config.json"
    config = _read_json(config_path) if config_path.exists() else {}
    if config.get("add_eos_token"):
        raise TokenizerError("tokenizer_config.json: add_eos_token cannot be expressed")
    facts = SideFacts(
        bos=_content(config, "bos_token"),
        eos=_content(config, "eos_token") or _eos_by_id(folder, document),
        add_bos=config.get("add_bos_token"),
        no_bos=wishes.no_bos,
        no_eos=wishes.no_eos,
    )
    if facts.add_bos and facts.bos is None and "bos_token" in config:
        facts.add_bos = None  # a default of the class that wrote the file, for a model without BOS
    for name in ("bos", "eos", "add_bos"):
        if (wish := getattr(wishes, name)) is not None:
            setattr(facts, name, wish)
    if wishes.no_bos:
        facts.bos, facts.add_bos = None, False
    if wishes.no_eos:
        facts.eos = None
    return facts


def _content(config: dict[str, Any], name: str) -> str | None:
    """The text of a token, which is either that or an object that holds it."""
    value = config.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        raise TokenizerError(f"tokenizer_config.json: {name} is {value!r}")
    return value


def _eos_by_id(folder: Path, document: dict[str, Any]) -> str | None:
    """The text of the first eos_token_id that a file beside the tokenizer names."""
    for name in ID_FILES:
        if not (folder / name).exists():
            continue
        ids = _read_json(folder / name).get("eos_token_id")
        for id_ in ids if isinstance(ids, list) else [ids]:
            for token in document.get("added_tokens") or []:
                if id_ is not None and token.get("id") == id_:
                    return token.get("content")
    return None


def _report(path: Path, size: int, conversion: Conversion) -> None:
    tokenizer = conversion.tokenizer

    def named(id_: int) -> str:
        return "none" if id_ < 0 else f"{id_} {mlt.printable(tokenizer.tokens[id_].data)}"

    added = sum(token.added for token in tokenizer.tokens)
    kind = "SentencePiece-style" if tokenizer.kind == mlt.KIND_SENTENCEPIECE else "byte-level"
    print(f"{path}: {size} bytes, {kind} BPE")
    print(f"  tokens {len(tokenizer.tokens)}, {added} of them added; merge rules {len(tokenizer.merges)}")
    print(
        f"  BOS {named(tokenizer.bos)}; EOS {named(tokenizer.eos)}; flags {' '.join(tokenizer.flag_names()) or 'none'}"
    )
    for note in conversion.notes:
        print(f"  note: {note}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convert_tokenizer.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0 done, 1 refused or unreadable, 2 wrong command line.",
    )
    parser.add_argument("input", metavar="INPUT", type=Path, help="folder with a tokenizer.json, that file, or .gguf")
    parser.add_argument("-o", "--output", metavar="FILE.mlt", type=Path, required=True)
    parser.add_argument("--bos", metavar="TOKEN", help="the text of BOS, or none")
    parser.add_argument("--eos", metavar="TOKEN", help="the text of EOS, or none")
    parser.add_argument(
        "--add-bos",
        choices=["auto", "yes", "no"],
        default="auto",
        help="whether encoding prepends BOS; auto: as add_bos_token says, else as the post_processor does",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Converts one tokenizer and reports; a failure is one line on stderr and leaves no file."""
    options = _parser().parse_args(arguments)
    wishes = SideFacts(
        bos=None if options.bos == "none" else options.bos,
        eos=None if options.eos == "none" else options.eos,
        add_bos={"auto": None, "yes": True, "no": False}[options.add_bos],
        no_bos=options.bos == "none",
        no_eos=options.eos == "none",
    )
    try:
        conversion = convert_file(options.input, wishes)
        size = mlt.write_tokenizer(options.output, conversion.tokenizer)
    except (TokenizerError, mlt.MltError) as error:
        print(f"{options.input}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or options.input}: {error.strerror or error}", file=sys.stderr)
        return 1
    _report(options.output, size, conversion)
    return 0


if __name__ == "__main__":
    sys.exit(main())
