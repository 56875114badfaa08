r"""A slow encoder and decoder of .mlt files, written from the format's description alone.

It shares no code with src/text and none with the tokenizers library, so that three independent readings of a
tokenizer can be compared. Needs the `regex` package for \p{L}, \p{M} and \p{N}; its Unicode version may be newer than
the library's, which shows at code points assigned in between (unicode_differences in compare.py names them).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import mlt
import regex

SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # White_Space: what \s stands for


def _pattern(flags: int) -> regex.Pattern:
    if flags & mlt.FLAG_GPT2:
        text = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    else:
        marks = r"\p{M}" if flags & mlt.FLAG_MARKS else ""
        digits = r"\p{N}" if flags & mlt.FLAG_ONE_DIGIT else r"\p{N}{1,3}"
        text = (
            rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}{marks}]+|{digits}"
            rf"| ?[^\s\p{{L}}{marks}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
    text = text.replace(r"(?!\S)", rf"(?![^{SPACE}])").replace(r"[^\s", rf"[^{SPACE}").replace(r"\s", f"[{SPACE}]")
    return regex.compile(text)


class ReferenceTokenizer:
    """Encodes and decodes as the format says, in the simplest way."""

    def __init__(self, tokenizer: mlt.Tokenizer) -> None:
        self.file = tokenizer
        self.flags = tokenizer.flags
        self.rules: dict[tuple[int, int], tuple[int, int]] = {}  # pair of ids -> rank, merged id
        for rank, (left, right, merged) in enumerate(tokenizer.merges.tolist()):
            self.rules.setdefault((left, right), (rank, merged))
        self.added: dict[str, int] = {}
        self.pieces: dict[bytes, int] = {}  # what a character or byte may begin as
        self.words: dict[bytes, int] = {}  # ordinary tokens
        self.byte_tokens: dict[int, int] = {}
        for id_, token in enumerate(tokenizer.tokens):
            if token.added and token.data:
                self.added.setdefault(token.data.decode("utf-8", "replace"), id_)
            if token.attr == mlt.ATTR_BYTE:
                self.byte_tokens.setdefault(token.data[0], id_)
                continue
            if token.attr == 0:
                self.words.setdefault(token.data, id_)
            self.pieces.setdefault(token.data, id_)
        for data, id_ in self.words.items():
            self.pieces[data] = id_
        self.lengths: dict[str, list[int]] = {}  # of added tokens, longest first, by their first character
        for text in self.added:
            self.lengths.setdefault(text[0], []).append(len(text))
        self.lengths = {first: sorted(set(sizes), reverse=True) for first, sizes in self.lengths.items()}
        if tokenizer.kind == mlt.KIND_BYTE_LEVEL:
            self.pattern = _pattern(self.flags)

    # ------------------------------------------------------------ encoding

    def encode(self, text: str, *, special: bool, bos: bool = False) -> list[int]:
        """Ids; `special`: added tokens spelled in the text become their ids."""
        ids = [self.file.bos] if bos and self.flags & mlt.FLAG_BOS and self.file.bos >= 0 else []
        for at, part in self._parts(text) if special else [(0, text)]:
            if isinstance(part, int):
                ids.append(part)
            elif self.file.kind == mlt.KIND_BYTE_LEVEL:
                ids += self._byte_level(part)
            else:
                ids += self._sentencepiece(part, first=at == 0)
        return ids

    def _parts(self, text: str) -> Iterator[tuple[int, str | int]]:
        """Added tokens, leftmost and then longest first, and the texts between them, each with its place."""
        begin = at = 0
        while at < len(text):
            for size in self.lengths.get(text[at], ()):
                id_ = self.added.get(text[at : at + size])
                if id_ is not None:
                    if begin < at:
                        yield begin, text[begin:at]
                    yield at, id_
                    begin = at = at + size
                    break
            else:
                at += 1
        if begin < len(text):
            yield begin, text[begin:]

    def _byte_level(self, text: str) -> list[int]:
        if self.flags & mlt.FLAG_NFC:
            text = unicodedata.normalize("NFC", text)
        sections = regex.findall(r"\p{N}|\P{N}+", text) if self.flags & mlt.FLAG_SPLIT_DIGITS else [text]
        ids = []
        for word in (match[0] for section in sections for match in self.pattern.finditer(section)):
            data = word.encode()
            if self.flags & mlt.FLAG_IGNORE_MERGES and data in self.words:
                ids.append(self.words[data])
                continue
            symbols = [self.words.get(data[i : i + 1]) for i in range(len(data))]
            ids += self._merge([symbol for symbol in symbols if symbol is not None])
        return ids

    def _sentencepiece(self, text: str, first: bool) -> list[int]:
        if not text:
            return []
        text = text.replace(" ", "▁")
        if self.flags & mlt.FLAG_PREFIX_FIRST:
            prefix = first and not text.startswith("▁")
        else:
            prefix = not self.flags & mlt.FLAG_NO_PREFIX
        symbols: list[int] = []
        for character in "▁" * prefix + text:
            data = character.encode()
            if data in self.pieces:
                symbols.append(self.pieces[data])
            elif all(byte in self.byte_tokens for byte in data):
                symbols += [self.byte_tokens[byte] for byte in data]
        return self._merge(symbols)

    def _merge(self, symbols: list[int]) -> list[int]:
        """Applies the lowest-ranked rule, the leftmost of equals, until none applies."""
        while len(symbols) > 1:
            found = [
                (rule[0], at)
                for at, pair in enumerate(zip(symbols, symbols[1:], strict=False))
                if (rule := self.rules.get(pair)) is not None
            ]
            if not found:
                break
            at = min(found)[1]
            symbols[at : at + 2] = [self.rules[symbols[at], symbols[at + 1]][1]]
        return symbols

    # ------------------------------------------------------------ decoding

    def decode(self, ids: list[int]) -> str:
        """The text of a whole sequence, added tokens included."""
        tokens = [self.file.tokens[id_] for id_ in ids]
        if self.file.kind == mlt.KIND_BYTE_LEVEL:
            return b"".join(token.data for token in tokens).decode("utf-8", "replace")
        text, run = "", b""
        for token in [*tokens, mlt.Token(b"")]:
            if token.attr == mlt.ATTR_BYTE:
                run += token.data
                continue
            try:
                text += run.decode()
            except UnicodeDecodeError:
                text += "\ufffd" * len(run)
            run = b""
            text += token.data.decode().replace("▁", " ")
        strip = not self.flags & mlt.FLAG_NO_PREFIX and text.startswith(" ")
        return text[strip:]
