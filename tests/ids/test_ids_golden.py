"""src/text against the stored results of the tokenizers library: ids with and without added tokens, and text."""

import hashlib
from pathlib import Path

import mlt
import pytest
import synthetic
from driver import DECODE, ENCODE, ENCODE_PLAIN, ENCODE_WITH_BOS, Driver, Failure
from goldens import GOLDEN, PUBLISHED, TINY, Golden, Row, read_goldens
from tokenizer_json import SideFacts, convert_json

TINY_GOLDENS = read_goldens(TINY)
PUBLISHED_GOLDENS = read_goldens(PUBLISHED)


def differences(texts: list[str], got: list, wanted: list) -> list[str]:
    """The first few, readable; none is good."""
    assert len(got) == len(wanted)
    assert len(got) > 1000, "nothing to speak of was compared"
    wrong = [f"{ascii(text)}: {a} instead of {b}" for text, a, b in zip(texts, got, wanted, strict=True) if a != b]
    return [f"{len(wrong)} of {len(got)} differ", *wrong[:5]] if wrong else []


def check_ids(driver: Driver, rows: list[Row]) -> None:
    texts = [row.text for row in rows]
    assert differences(texts, driver.encode(ENCODE, texts), [row.ids for row in rows]) == []
    assert differences(texts, driver.encode(ENCODE_PLAIN, texts), [row.plain for row in rows]) == []


def check_text(driver: Driver, rows: list[Row]) -> None:
    pieces = driver.decode(DECODE, [row.ids for row in rows])
    assert [piece for piece in pieces if isinstance(piece, Failure)] == []
    for piece in (part for parts in pieces for part in parts):
        piece.decode()  # raises if it is not whole characters
    got = [b"".join(parts).decode() for parts in pieces]
    assert differences([row.text for row in rows], got, [row.decoded for row in rows]) == []


@pytest.fixture(params=synthetic.VARIANTS)
def tiny(request, ids_driver) -> tuple[Driver, Golden]:
    return Driver(ids_driver, GOLDEN / f"{request.param}.mlt"), TINY_GOLDENS[request.param]


def test_tiny_ids(tiny):
    driver, golden = tiny
    check_ids(driver, golden.rows)


def test_tiny_text(tiny):
    driver, golden = tiny
    check_text(driver, golden.rows)


def test_tiny_bos(tiny):
    driver, _ = tiny
    tokenizer = mlt.read_tokenizer(driver.mlt)
    expected = [tokenizer.bos] if tokenizer.flags & mlt.FLAG_BOS else []
    texts = ["", "a", "<|x|>", " \u00e9"]
    plain = driver.encode(ENCODE, texts)
    assert driver.encode(ENCODE_WITH_BOS, texts) == [expected + ids for ids in plain]


@pytest.mark.parametrize("name", synthetic.VARIANTS)
def test_tiny_files_are_what_the_converter_makes(name):
    document = synthetic.document(name)
    assert convert_json(document, SideFacts(no_eos=True)).tokenizer.pack() == (GOLDEN / f"{name}.mlt").read_bytes()


def check_sha256(golden: Golden, path: Path) -> None:
    """Another .mlt than at the time of the goldens: the converter gives something else, or renewal was forgotten."""
    assert hashlib.sha256(path.read_bytes()).hexdigest() == golden.mlt_sha256


@pytest.mark.parametrize("name", synthetic.VARIANTS)
def test_tiny_goldens_are_of_these_files(name):
    check_sha256(TINY_GOLDENS[name], GOLDEN / f"{name}.mlt")


@pytest.mark.parametrize("name", PUBLISHED_GOLDENS)
def test_published_goldens_are_of_these_files(name, published):
    check_sha256(PUBLISHED_GOLDENS[name], published(name).mlt)


def test_every_flag_has_a_tiny_tokenizer():
    flags = [mlt.read_tokenizer(GOLDEN / f"{name}.mlt").flags for name in synthetic.VARIANTS]
    assert {bit for bit in mlt.FLAG_NAMES if not any(f & bit for f in flags)} == set()
    assert any(not f & (mlt.FLAG_GPT2 | mlt.FLAG_MARKS) for f in flags)


def test_goldens_can_tell_tokenizers_apart():
    """If two variants gave the same ids on all strings, one of them would test nothing."""
    ids = {name: {row.text: row.ids for row in golden.rows} for name, golden in TINY_GOLDENS.items()}
    alike = [(a, b) for a in ids for b in ids if a < b and all(ids[b].get(text, i) == i for text, i in ids[a].items())]
    assert alike == []


@pytest.mark.parametrize("name", PUBLISHED_GOLDENS)
def test_published_ids(name, published):
    check_ids(published(name), PUBLISHED_GOLDENS[name].rows)


@pytest.mark.parametrize("name", PUBLISHED_GOLDENS)
def test_published_text(name, published):
    check_text(published(name), PUBLISHED_GOLDENS[name].rows)


def test_a_wrong_id_is_noticed():
    rows = TINY_GOLDENS["tiny-gpt2"].rows
    texts, ids = [row.text for row in rows], [row.ids for row in rows]
    damaged = [*ids[:700], [*ids[700], 1], *ids[701:]]
    assert differences(texts, damaged, ids)[0] == f"1 of {len(ids)} differ"


def test_the_reader_of_goldens_gives_what_was_written(tmp_path: Path):
    from goldens import write_goldens

    some = {"tiny-gemma": TINY_GOLDENS["tiny-gemma"]}
    write_goldens(tmp_path / "some.xz", some)
    assert read_goldens(tmp_path / "some.xz") == some
