"""Talks to ids_driver: many texts or id sequences in, ids or pieces of text out, one process for a batch."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FAILURE = 0xFFFFFFFF

ENCODE = "e"  # added tokens become ids
ENCODE_PLAIN = "p"  # added tokens are plain text
ENCODE_WITH_BOS = "b"
DECODE = "d"
DECODE_WITHOUT_ADDED = "s"


@dataclass(frozen=True)
class Failure:
    """What ml.h answered in place of a result."""

    status: int
    message: str


@dataclass
class Driver:
    """The program and the tokenizer that it opens."""

    program: Path
    mlt: Path

    def encode(self, command: str, texts: Iterable[str | bytes]) -> list[list[int] | Failure]:
        """Ids of each text; bytes need not be UTF-8."""
        raw = [text.encode() if isinstance(text, str) else text for text in texts]
        answers = self._answers(struct.pack("<cI", command.encode(), len(data)) + data for data in raw)
        return [answer if isinstance(answer, Failure) else list(answer) for answer, _ in answers]

    def decode(self, command: str, sequences: Iterable[list[int]]) -> list[list[bytes] | Failure]:
        """The pieces of text that each sequence gives, one for each id and one for the end."""
        requests = (struct.pack(f"<cI{len(ids)}i", command.encode(), len(ids), *ids) for ids in sequences)
        return [
            sizes if isinstance(sizes, Failure) else list(_cut(rest, sizes))
            for sizes, rest in self._answers(requests, pieces=True)
        ]

    def _answers(
        self, requests: Iterable[bytes], pieces: bool = False
    ) -> Iterator[tuple[tuple[int, ...] | Failure, bytes]]:
        """The numbers of each answer, and the bytes of the pieces behind them."""
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answered:
            for request in requests:
                asked.write(request)
            asked.seek(0)
            done = subprocess.run(
                [self.program, self.mlt], stdin=asked, stdout=answered, stderr=subprocess.PIPE, text=False, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"{self.program.name} exit {done.returncode}: {done.stderr.decode()[-2000:]}")
            answered.seek(0)
            data = answered.read()
        at = 0
        while at < len(data):
            (count,) = struct.unpack_from("<I", data, at)
            at += 4
            if count == FAILURE:
                status, size = struct.unpack_from("<II", data, at)
                at += 8 + size
                yield Failure(status, data[at - size : at].decode()), b""
                continue
            numbers = struct.unpack_from(f"<{count}i", data, at)
            at += 4 * count
            size = sum(numbers) if pieces else 0
            yield numbers, data[at : at + size]
            at += size


def _cut(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
