"""Small model packages for the tests in JavaScript: random weights, and tokenizers of tests/golden/ids.

    build/venv/bin/python tests/js/make_packages.py build/packages

Each has the chat template below, whose turns are written with two control tokens of the tokenizer.
"""

import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import mlb  # noqa: E402
import mlt  # noqa: E402
import tiny  # noqa: E402

TEMPLATE = (
    "{% for message in messages %}{{ '<|x|>' + message['role'] + '\\n' + (message['content'] | trim) + '<|end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|x|>assistant\\n' }}{% endif %}"
)
# Package -> feature of tools/tiny.py and tokenizer.
PACKAGES = {
    "llama": ("llama", "tiny-llama3"),
    "hybrid": ("qwen35", "tiny-qwen2"),
    "window": ("gemma3", "tiny-gemma"),
}


def entry(path: Path) -> dict[str, str | int]:
    content = path.read_bytes()
    return {"name": path.name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_package(folder: Path, feature: str, tokenizer_name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / "tests/golden/ids" / f"{tokenizer_name}.mlt"
    tokens = [token.data for token in mlt.read_tokenizer(source).tokens]
    mlb.write_model(folder / "model.mlb", *tiny.make_tiny(feature, vocab=len(tokens), max_seq=512))
    (folder / "tokenizer.mlt").write_bytes(source.read_bytes())
    manifest = {
        "format": "krafla-model",
        "version": 1,
        "name": f"tiny {feature}",
        "architecture": feature,
        "files": {"model": entry(folder / "model.mlb"), "tokenizer": entry(folder / "tokenizer.mlt")},
        "contextSize": 512,
        "tokens": {"eos": {"id": tokens.index(b"<|end|>"), "text": "<|end|>"}},
        "stopTokens": [{"id": tokens.index(b"<|end|>"), "text": "<|end|>"}],
        "chatTemplate": TEMPLATE,
    }
    (folder / "model.json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    for name, (feature, tokenizer_name) in PACKAGES.items():
        write_package(Path(sys.argv[1]) / name, feature, tokenizer_name)
