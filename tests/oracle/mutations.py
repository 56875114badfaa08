"""Makes mistakes in a copy of the source tree, one at a time, and builds it.

The comparisons with stored logits are worth as much as the mistakes that they find. mutations.txt lists mistakes;
test_mutations.py makes each and expects the comparisons to fail.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("mutations.txt")

# Files that only one mode of the engine runs; a mistake elsewhere has to be found in both.
MODES = {"kernels/exact.c": ("exact",), "kernels/float_kernels.h": ("production",)}


@dataclass(frozen=True)
class Mutation:
    """One mistake: in a file below src/, a text that occurs once and what takes its place."""

    name: str
    file: str
    find: str
    replace: str

    @property
    def modes(self) -> tuple[str, ...]:
        """The comparisons that have to find it, each of them alone."""
        return MODES.get(self.file, ("exact", "production"))

    def applied_to(self, text: str) -> str:
        """The text of its file with the mistake. Raises when there is not exactly one place to change."""
        if text.count(self.find) != 1:
            raise AssertionError(f"{self.name}: {self.find!r} occurs {text.count(self.find)} times in {self.file}")
        return text.replace(self.find, self.replace)


def read_mutations(text: str) -> list[Mutation]:
    """The mutations of a list, see the head of mutations.txt."""
    found, file = [], ""
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines and lines[0].startswith("@ "):
            file = lines.pop(0)[2:]
        if not lines:
            continue
        find, replace = ("\n".join(line[2:] for line in lines if line.startswith(sign)) for sign in ("- ", "+ "))
        if not file or not find or len(lines) != 1 + sum(line.startswith(("- ", "+ ")) for line in lines):
            raise ValueError(f"not a mutation: {lines}")
        found.append(Mutation(lines[0], file, find, replace))
    return found


MUTATIONS = read_mutations(LIST.read_text())


@dataclass
class Workshop:
    """A copy of the source tree, in which one mutation at a time is made and built."""

    folder: Path
    sources: dict[Path, bytes]  # as they were when the copy was made, by their path in the tree

    @classmethod
    def open(cls, root: Path) -> Workshop:
        """A copy in build/mutations of the checkout at root."""
        paths = [path for path in (root / "src").rglob("*") if path.is_file()] + [root / "Makefile"]
        return cls(root / "build" / "mutations", {path.relative_to(root): path.read_bytes() for path in paths})

    def build(self, mutation: Mutation | None) -> Path:
        """Makes the mutation, and no other, and returns the ml_run that it gives. Raises if it does not build."""
        changed = dict(self.sources)
        if mutation:
            file = Path("src", mutation.file)
            changed[file] = mutation.applied_to(changed[file].decode()).encode()
        self._write(changed)
        command = ["make", f"-j{os.cpu_count()}", "build/native/ml_run", "native_flags=-O1 -DNDEBUG", "warnings=-w"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        made = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise AssertionError(f"does not build:\n{made.stdout[-2000:]}{made.stderr[-4000:]}")
        return self.folder / "build" / "native" / "ml_run"

    def _write(self, files: dict[Path, bytes]) -> None:
        """Makes the tree hold these files. Those that are the same stay untouched, so that their objects do too."""
        for path in list((self.folder / "src").rglob("*")):
            if path.is_file() and path.relative_to(self.folder) not in files:
                path.unlink()
        for name, data in files.items():
            path = self.folder / name
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
