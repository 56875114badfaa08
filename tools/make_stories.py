#!/usr/bin/env python3
"""Writes short stories for children, the data on which examples/models/stories was trained. CC0, like all it writes.

    python3 tools/make_stories.py --count 5 --seed 7                     five stories to read
    python3 tools/make_stories.py --count 160000 --out build/stories      train.txt and held-out.txt

The stories come from plots (story_plots_*.py) with casts, places, weather and many paraphrases of every sentence, not
from any book or model. Story number I of a seed is the same on every machine, whatever the count.

A schema is a plot with its main choices, such as the thing that is lost, the place where it is lost and the animal that
finds it. Of every 25 schemata one is kept out of train.txt altogether and makes up held-out.txt, so that held-out loss
tells how well a model writes stories that it has not seen.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import story_plots_days
import story_plots_friends
import story_plots_growing
import story_plots_things
from story_teller import Story

PLOTS = story_plots_days.PLOTS | story_plots_friends.PLOTS | story_plots_growing.PLOTS | story_plots_things.PLOTS
END = "\n\n\n"  # between the stories of a file; no story holds it
HELD_OUT_ONE_IN = 25
TITLED = 0.4  # of all stories


class Told(NamedTuple):
    """A finished story."""

    text: str
    schema: str

    @property
    def held_out(self) -> bool:
        """Whether its schema is kept from training."""
        return int.from_bytes(hashlib.sha256(self.schema.encode()).digest()[:4], "little") % HELD_OUT_ONE_IN == 0


def tell(seed: int, number: int, plot: str | None = None) -> Told:
    """Story `number` of a seed, of any plot or of the one named."""
    story = Story(random.Random(f"{seed}:{number}"))
    name = story.pick(sorted(PLOTS)) if plot is None else plot
    story.key.append(name)
    PLOTS[name](story)
    text = story.text()
    if story.chance(TITLED):
        text = f"{_title(story.title)}\n\n{text}"
    return Told(text, "/".join(story.key))


def _title(text: str) -> str:
    """Title case: small words stay small, but for the first."""
    small = {"a", "an", "and", "the", "of", "in", "on", "to", "for", "who", "from", "with"}
    words = text.split()
    return " ".join(w if w in small and i else w[:1].upper() + w[1:] for i, w in enumerate(words))


def tell_all(seed: int, count: int, plot: str | None = None) -> Iterator[Told]:
    return (tell(seed, number, plot) for number in range(count))


def write_files(folder: Path, seed: int, count: int) -> tuple[int, int]:
    """train.txt and held-out.txt; how many stories each got."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[bool, list[str]] = {False: [], True: []}
    for story in tell_all(seed, count):
        parts[story.held_out].append(story.text)
    for held_out, name in ((False, "train.txt"), (True, "held-out.txt")):
        (folder / name).write_text(END.join(parts[held_out]) + "\n", encoding="utf-8")
    return len(parts[False]), len(parts[True])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="make_stories.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=3, metavar="N", help="how many stories; default 3")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default 1")
    parser.add_argument("--plot", choices=sorted(PLOTS), help="only this plot (for reading, not for training)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write train.txt and held-out.txt there")
    options = parser.parse_args(arguments)
    if options.count < 1:
        parser.error("--count: must be 1 or more")
    if options.out and options.plot:
        parser.error("--plot has no meaning with --out: files hold all plots")
    if options.out:
        try:
            train, held_out = write_files(options.out, options.seed, options.count)
        except OSError as error:
            print(f"make_stories.py: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
        print(f"{train} stories in train.txt, {held_out} in held-out.txt")
        return 0
    for story in tell_all(options.seed, options.count, options.plot):
        print(f"[{story.schema}]\n{story.text}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
