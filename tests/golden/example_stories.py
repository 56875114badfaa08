#!/usr/bin/env python3
"""Makes tests/golden/example-stories.json: what the models of examples/models write, with fixed seeds.

make native
build/venv/bin/python tests/golden/example_stories.py            renews the file
build/venv/bin/python tests/golden/example_stories.py --read 20  prints that many stories of each model, to read
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ROOT / "examples" / "models"
STORED = Path(__file__).with_name("example-stories.json")
SUFFIXES = (".mlb", ".mlt", ".tinyloop")
MOST = 400  # ids; a story ends before
PROMPTS = ("", "Once upon a time", "One day, a little fox", "The Lost Kite", "Mia was a brave girl")
N_STORED = 3


class Generated(NamedTuple):
    """A story with its prompt; ids are those that follow the prompt."""

    text: str
    ids: list[int]
    ended: bool


def _ml_run(program: Path, *arguments: str) -> str:
    command = [program, *arguments, "--quiet"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def _ids(printed: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", printed)]


def generate(program: Path, name: str, prompt: str, seed: int) -> Generated:
    """What the package's model writes after a prompt, sampled as its model.json says."""
    folder = PACKAGES / name
    sampling = json.loads((folder / "model.json").read_text())["sampling"]
    how = ["--temp", str(sampling["temperature"]), "--top-p", str(sampling["topP"]), "--seed", str(seed)]
    file = next(path for path in sorted(folder.iterdir()) if path.suffix in (".mlb", ".tinyloop"))
    vocabulary = ["--tokenizer", str(folder / "tokenizer.mlt")]
    text = subprocess.run(
        [program, *vocabulary, "--tokenize", "-", "--quiet"], input=prompt, check=True, capture_output=True, text=True
    ).stdout
    prompt_ids = _ids(text)

    def listed(ids: list[int]) -> str:
        return ",".join(map(str, ids))

    stop = ["--stop-ids", "1"]
    ids = _ids(_ml_run(program, "-m", str(file), "--ids", listed(prompt_ids), "-n", str(MOST), *stop, *how))
    whole = _ml_run(program, *vocabulary, "--detokenize", listed(prompt_ids + ids))
    return Generated(whole.removesuffix("\n").lstrip(), ids, len(ids) < MOST)


def problems(story: Generated) -> list[str]:
    """What a machine can see: it does not end, it stops in a sentence, it is too short, it repeats itself."""
    found = []
    if not story.ended:
        found.append("no end")
    if not re.search(r'[.!?]"?$', story.text):
        found.append("the last sentence does not end")
    sentences = [sentence for sentence in re.split(r'(?<=[.!?])"? ', story.text) if len(sentence) > 8]
    if len(sentences) < 4:
        found.append("fewer than four sentences")
    if any(a == b for a, b in zip(sentences, sentences[1:], strict=False)):
        found.append("a sentence twice in a row")
    if len(set(sentences)) < 0.8 * len(sentences):
        found.append("sentences are repeated")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--read", type=int, metavar="N", help="print N stories of each model instead")
    parser.add_argument("--model", metavar="NAME", help="of this model only; needs --read")
    options = parser.parse_args()
    program = ROOT / "build" / "native" / "ml_run"
    names = sorted(path.parent.name for path in PACKAGES.glob("*/model.json"))
    if options.read:
        for name in [options.model] if options.model else names:
            for seed in range(1, options.read + 1):
                story = generate(program, name, PROMPTS[seed % len(PROMPTS)], seed)
                print(f"--- {name}, seed {seed}, {len(story.ids)} ids {problems(story) or ''}\n{story.text}\n")
        return 0
    stories = {
        name: [
            {"prompt": prompt, "seed": seed, "text": story.text, "ids": story.ids}
            for seed, prompt in enumerate(PROMPTS[:N_STORED], 1)
            for story in [generate(program, name, prompt, seed)]
        ]
        for name in names
    }
    document = {"made by": "tests/golden/example_stories.py", "stories": stories}
    STORED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
