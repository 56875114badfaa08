r"""The parts of a tokenizer.json around the model, checked one by one against what an .mlt file means.

Kind 2 (byte-level)    normalizer none or NFC; then Digits, if at all; then one of the known patterns; ByteLevel decoder
Kind 1 (SentencePiece) spaces become ▁ by a normalizer or by Metaspace, with one of three rules for the prefix ▁, and
                       the decoder takes away just what the prefix rule added
"""

from __future__ import annotations

import json
from typing import Any

import mlt
from tokenizer_vocab import TokenizerError

Part = dict[str, Any]

# The patterns that .mlt flags name, as their owners published them.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERN_FLAGS = {
    LLAMA3: 0,
    QWEN2: mlt.FLAG_ONE_DIGIT,
    QWEN35: mlt.FLAG_MARKS | mlt.FLAG_ONE_DIGIT,
    GPT2: mlt.FLAG_GPT2,
    GPT2.replace("'s|'t|'re|'ve|'m|'ll|'d", "'(?:[sdmt]|ll|ve|re)"): mlt.FLAG_GPT2,
}

SPACE_TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
MARK_TO_SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
PREPEND_MARK = {"type": "Prepend", "prepend": "▁"}
FROM_BYTES = [MARK_TO_SPACE, {"type": "ByteFallback"}, {"type": "Fuse"}]
STRIP_ONE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
SPLIT_AT_SPACES = {
    "type": "Split",
    "pattern": {"String": " "},
    "behavior": "MergedWithPrevious",
    "invert": False,
}


def flatten(part: Part | None, members: str) -> list[Part]:
    """The steps of a part: none, itself, or those of a Sequence (whose list has the name `members`)."""
    if part is None:
        return []
    if not isinstance(part, dict):
        raise TokenizerError(f"{members[:-1]} {part!r} is not an object")
    if part.get("type") != "Sequence":
        return [part]
    return [step for member in part.get(members, []) for step in flatten(member, members)]


def refusal(where: str, part: Any) -> TokenizerError:
    """An error that names the part and shows it, cut to a line."""
    name = part.get("type", "?") if isinstance(part, dict) else "?"
    text = json.dumps(part, ensure_ascii=False)
    return TokenizerError(f"{where} {name} cannot be expressed: {text if len(text) <= 160 else text[:157] + '...'}")


# ---------------------------------------------------------------- kind 2


def byte_level_flags(document: dict[str, Any]) -> int:
    """Flags of a byte-level tokenizer's normalizer and pattern. Raises TokenizerError for any other."""
    flags = 0
    for step in flatten(document.get("normalizer"), "normalizers"):
        if step.get("type") != "NFC":
            raise refusal("normalizer", step)
        flags |= mlt.FLAG_NFC
    steps = flatten(document.get("pre_tokenizer"), "pretokenizers")
    *before, last = steps
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        raise refusal("pre_tokenizer", last)
    if before and before[0].get("type") == "Digits":
        if not before[0].get("individual_digits"):
            raise refusal("pre_tokenizer", before[0])
        flags |= mlt.FLAG_SPLIT_DIGITS
        before = before[1:]
    flags |= _pattern_flags(before, use_regex=last.get("use_regex", True))
    for step in flatten(document.get("decoder"), "decoders") or [{"type": "none"}]:
        if step.get("type") != "ByteLevel":
            raise refusal("decoder", step)
    return flags


def _pattern_flags(splits: list[Part], use_regex: bool) -> int:
    """One pattern: that of a single Split, or else ByteLevel's own, which is GPT-2's."""
    if not splits:
        if not use_regex:
            raise TokenizerError("pre_tokenizer ByteLevel without any pattern cannot be expressed")
        return mlt.FLAG_GPT2
    if len(splits) > 1 or use_regex:
        names = ", ".join(str(step.get("type")) for step in splits) + (", ByteLevel's own pattern" if use_regex else "")
        raise TokenizerError(f"pre_tokenizer with several patterns ({names}) cannot be expressed")
    split = splits[0]
    pattern = split.get("pattern", {}).get("Regex") if split.get("type") == "Split" else None
    if pattern not in PATTERN_FLAGS:
        raise refusal("pre_tokenizer", split)
    behavior, invert = split.get("behavior"), split.get("invert")
    # These patterns cover every character, so removing what lies between the matches removes nothing.
    if (behavior, invert) not in (("Isolated", False), ("Removed", True)):
        raise TokenizerError(f"pre_tokenizer Split with behavior {behavior}, invert {invert} cannot be expressed")
    return PATTERN_FLAGS[pattern]


# ---------------------------------------------------------------- kind 1


def sentencepiece_flags(document: dict[str, Any]) -> int:
    """Flags of a SentencePiece-style tokenizer's prefix rule. Raises TokenizerError for any other."""
    normalizers = flatten(document.get("normalizer"), "normalizers")
    steps = flatten(document.get("pre_tokenizer"), "pretokenizers")
    if normalizers == [PREPEND_MARK, SPACE_TO_MARK]:
        flags = 0
    elif normalizers == [SPACE_TO_MARK]:
        flags = mlt.FLAG_NO_PREFIX
    elif normalizers:
        wrong = next((n for n in normalizers if n not in (PREPEND_MARK, SPACE_TO_MARK)), normalizers[0])
        raise refusal("normalizer", wrong)
    else:
        flags, steps = _metaspace_flags(steps), []
    if steps not in ([], [SPLIT_AT_SPACES]):  # no space is left that the latter could split at
        raise refusal("pre_tokenizer", next(step for step in steps if step != SPLIT_AT_SPACES))
    _check_sentencepiece_decoder(document, has_prefix=not flags & mlt.FLAG_NO_PREFIX)
    return flags


def _metaspace_flags(steps: list[Part]) -> int:
    """The prefix rule of a Metaspace pre_tokenizer that does not split, which is all that there may be."""
    if not steps:
        raise TokenizerError("pre_tokenizer and normalizer are both missing: neither ByteLevel nor ▁ for spaces")
    metaspace = steps[0]
    rules = {"first": mlt.FLAG_PREFIX_FIRST, "never": mlt.FLAG_NO_PREFIX}
    plain = metaspace.get("replacement") == "▁" and metaspace.get("split", True) is False
    if len(steps) > 1 or metaspace.get("type") != "Metaspace" or not plain:
        raise refusal("pre_tokenizer", metaspace if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps})
    if metaspace.get("prepend_scheme", "always") not in rules:
        raise refusal("pre_tokenizer", metaspace)
    return rules[metaspace["prepend_scheme"]]


def _check_sentencepiece_decoder(document: dict[str, Any], has_prefix: bool) -> None:
    """The decoder removes one leading space exactly if encoding adds one."""
    steps = flatten(document.get("decoder"), "decoders")
    if steps[:3] != FROM_BYTES:
        raise refusal("decoder", document.get("decoder"))
    if has_prefix and steps[3:] != [STRIP_ONE]:
        raise TokenizerError("decoder without Strip, although a prefix ▁ is added: cannot be expressed")
    if not has_prefix and steps[3:]:
        raise refusal("decoder without prefix rule but with", steps[3])


# ---------------------------------------------------------------- BOS


def template_bos(post_processor: Part | None) -> int | None:
    """The id that is put before every text, or None. Raises TokenizerError for anything else that is added."""
    bos = None
    for step in flatten(post_processor, "processors"):
        if step.get("type") == "ByteLevel":  # offsets only
            continue
        if step.get("type") != "TemplateProcessing":
            raise refusal("post_processor", step)
        bos = _bos_of_template(step)
    return bos


def _bos_of_template(step: Part) -> int | None:
    single = step.get("single")
    if not isinstance(single, list) or not all(isinstance(item, dict) for item in single):
        raise refusal("post_processor", step)
    specials = [item["SpecialToken"]["id"] for item in single if "SpecialToken" in item]
    sequence_last = bool(single) and "Sequence" in single[-1]
    if not sequence_last or len(specials) != len(single) - 1 or len(specials) > 1:
        raise TokenizerError(f"post_processor TemplateProcessing adds more than one token in front: {single}"[:200])
    if not specials:
        return None
    ids = step.get("special_tokens", {}).get(specials[0], {}).get("ids", [])
    if len(ids) != 1:
        raise TokenizerError(f"post_processor gives {specials[0]!r} the ids {ids}, one is expected")
    return ids[0]
