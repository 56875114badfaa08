"""The comparison of compare.py as tests: more than 100 000 strings for each published tokenizer, zero differences.

`make ids` compares with all pieces of each vocabulary, this with 30 000 of them. ML_IDS_SEED chooses other strings
(default 1); the seed is in the name of the test that failed.
"""

import json
import os

import pytest
import tokenizer_sources

pytest.importorskip("tokenizers", reason="the tokenizers library is not installed (build/venv-hf)")

import compare
import mlt
from driver import ENCODE, ENCODE_WITH_BOS, Driver
from sample_texts import LANGUAGES

SEED = int(os.environ.get("ML_IDS_SEED", "1"))
NAMES = [source.name for source in tokenizer_sources.SOURCES]


@pytest.fixture(params=[f"{name}-seed{SEED}" for name in NAMES])
def folder(request):
    """Skips what was not fetched."""
    name = request.param.rsplit("-", 1)[0]
    if name not in tokenizer_sources.fetched():
        pytest.skip("published tokenizers are not fetched (`make ids` or tools/tokenizer_sources.py fetch)")
    return tokenizer_sources.fetched()[name]


def test_same_ids_and_text_as_the_library(folder, ids_driver):
    results = compare.compare_tokenizer(folder, ids_driver, SEED, most_pieces=30_000)
    assert all(result.compared > 100_000 for result in results[:3])
    assert all(result.compared > 10_000 for result in results)
    assert [str(result) for result in results if result.different] == []


def test_bos_as_the_library_adds_it(folder, ids_driver):
    """Where the converter decided by the post_processor; a tokenizer_config.json may say otherwise."""
    library = compare.Library(json.loads((folder / "tokenizer.json").read_text()))
    texts = ["", "a", " Hello", "\n\n"]
    ours = Driver(ids_driver, folder / "model.mlt").encode(ENCODE_WITH_BOS, texts)
    assert ours == [encoding.ids for encoding in library.whole.encode_batch(texts)]


def test_the_slow_encoder_agrees_too(folder):
    results = compare.compare_reference(folder, SEED, every=200)
    old_unicode = "\u0eba\U00011839\U0001183a"  # combining classes that came after the library's NFC tables
    results = [r for r in results if not (r.different and all(set(old_unicode) & set(d) for d in r.shown))]
    assert [str(result) for result in results if result.different] == []


def test_a_damaged_tokenizer_is_noticed(folder, ids_driver, tmp_path):
    """The comparison can fail: the best merge rules are taken in the wrong order."""
    tokenizer = mlt.read_tokenizer(folder / "model.mlt")
    tokenizer.merges = tokenizer.merges.copy()
    tokenizer.merges[:2000] = tokenizer.merges[:2000][::-1]
    mlt.write_tokenizer(tmp_path / "damaged.mlt", tokenizer)
    driver = Driver(ids_driver, tmp_path / "damaged.mlt")
    library = compare.Library(json.loads((folder / "tokenizer.json").read_text()))
    texts = [("prose", word) for sentence in LANGUAGES for word in (sentence, *sentence.split())]
    texts += [("vocabulary", t.data.decode("utf-8", "ignore").replace("▁", " ")) for t in tokenizer.tokens[:8000]]
    result = compare.compare_encoding("damaged", texts, lambda t: driver.encode(ENCODE, t), library.encode)
    assert result.different > 0
    assert "theirs" in result.shown[0]
