"""The models of examples/models: their packages are whole, and each writes the stories that are stored, to the end."""

import hashlib
import json
from pathlib import Path

import pytest

from golden.example_stories import PACKAGES, STORED, SUFFIXES, Generated, generate, problems

RECORDED = json.loads(STORED.read_text())
NAMES = sorted(path.parent.name for path in PACKAGES.glob("*/model.json"))


def test_stories_of_every_package_are_stored():
    assert sorted(RECORDED["stories"]) == NAMES
    assert "stories" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_package_is_whole(name):
    document = json.loads((PACKAGES / name / "model.json").read_text())
    listed = {file["name"] for file in document["files"].values()}
    assert {path.name for path in (PACKAGES / name).iterdir() if path.suffix in SUFFIXES} == listed
    for file in document["files"].values():
        data = (PACKAGES / name / file["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["sha256"])
    card = (PACKAGES / name / "README.md").read_text()
    assert f"license: {document['license']}" in card
    assert document["stopTokens"]


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name in NAMES for n in range(len(RECORDED["stories"][name]))]
)
def test_story_is_the_stored_one(ml_run: Path, name, number):
    recorded = RECORDED["stories"][name][number]
    found = generate(ml_run, name, recorded["prompt"], recorded["seed"])
    assert found.text == recorded["text"]
    assert found.ids == recorded["ids"]
    assert found.ended
    assert problems(found) == []


def test_bad_stories_are_seen():
    good = RECORDED["stories"]["stories"][0]["text"]
    assert problems(Generated(good, [5] * 90, ended=True)) == []
    assert problems(Generated(good, [5] * 90, ended=False))
    assert problems(Generated(good.rstrip('."!?'), [5] * 90, ended=True))
    assert problems(Generated("Pip sang. Pip ran. Pip ran. Pip slept.", [5] * 90, ended=True))
    assert problems(Generated("One day there was a fox, and that was all.", [5] * 10, ended=True))
