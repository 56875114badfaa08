"""Talks to ids_driver: many texts or id sequences in, ids or pieces of text out, one process for a batch."""

from __future__ import annotations

import functools
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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


Answer = tuple[tuple[int, ...] | Failure, bytes]


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

    def _answers(self, requests: Iterable[bytes], pieces: bool = False) -> Iterator[Answer]:
        """The numbers of each answer, and the bytes of the pieces behind them."""
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answered:
            count = 0
            for request in requests:
                asked.write(request)
                count += 1
            asked.seek(0)
            done = subprocess.run(
                [self.program, self.mlt], stdin=asked, stdout=answered, stderr=subprocess.PIPE, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"{self.program.name} exit {done.returncode}: {done.stderr.decode()[-2000:]}")
            answered.seek(0)
            for _ in range(count):
                yield _read_answer(answered, pieces)


class OpenDriver(Driver):
    """The same with a process that stays, for single questions to a tokenizer that takes long to load."""

    @functools.cached_property
    def process(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.program, self.mlt], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _answers(self, requests: Iterable[bytes], pieces: bool = False) -> Iterator[Answer]:
        for request in requests:
            self.process.stdin.write(request)
            self.process.stdin.flush()
            yield _read_answer(self.process.stdout, pieces)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(60) != 0:
            raise RuntimeError(f"{self.program.name} exit {self.process.returncode}")


def _read_answer(stream: IO[bytes], pieces: bool) -> Answer:
    (count,) = struct.unpack("<I", _read_exactly(stream, 4))
    if count == FAILURE:
        status, size = struct.unpack("<II", _read_exactly(stream, 8))
        return Failure(status, _read_exactly(stream, size).decode()), b""
    numbers = struct.unpack(f"<{count}i", _read_exactly(stream, 4 * count))
    return numbers, _read_exactly(stream, sum(numbers) if pieces else 0)


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise RuntimeError(f"the driver's answer ends after {len(data)} of {size} bytes")
    return data


def _cut(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
