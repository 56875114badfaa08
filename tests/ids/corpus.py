"""Strings on which tokenizers like to differ, made by seeded generators: the same names and seed, the same strings.

Each generator below stands for a kind of mistake. `base_corpus` gives what suits every tokenizer, `added_corpus` and
`vocabulary_corpus` what is made from a tokenizer's own added tokens and pieces.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator

from sample_texts import CODE, EMOJI, LANGUAGES

Generator = Callable[[random.Random], Iterator[str]]

BLANKS = [" ", "\n", "\t", "\r", "\v", "\f", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\u200b", "\x1c"]
APOSTROPHES = ["'", "\u2019", "\u02bc", "''", "`"]
ENDINGS = ["s", "t", "re", "ve", "m", "ll", "d"]
DIGITS = [
    "0123456789",
    "".join(map(chr, range(0x660, 0x66A))),  # Arabic-Indic, Nd
    "".join(map(chr, range(0x966, 0x970))),  # Devanagari, Nd
    "".join(map(chr, range(0xFF10, 0xFF1A))),  # full width, Nd
    "".join(map(chr, range(0x1D7D8, 0x1D7E2))),  # double-struck, Nd, beyond the BMP
    "\u00b2\u00b3\u00b9\u00bc\u00bd\u00be\u2070\u2460\u2474\u3220",  # No
    "\u2160\u2167\u216b\u2170\u2180\u3007\u3021\u16ee",  # Nl
]
MARKS = "".join(map(chr, [*range(0x300, 0x345), 0x345, *range(0x591, 0x5B0), 0x93C, 0x94D, 0x3099, 0x309A, 0x20DD]))
UNSTABLE = (  # characters that NFC changes, or whose neighbours it changes
    "\u212b\u2126\u1e9b\u0323\u0307\u0344\u0374\u037e\u0387\u0958\u09dc\u0b5c\u0f43\u1f71\u2000\u2001\u2329\uf900"
    "\ufb1d\ufb2a\u0cca\u0ccb\u0dda\u1100\u1161\u11a8\u1112\u1175\u11c2\uac00\uac01\ud7a3\u115f\u1160\u11a7"
    "\U0001d15e\U0001d1bb\U000110a5\U00011131\U0002f800\U0002fa1d\u00e9\u0065\u0301\u0327\u0334\u0338<>="
)


def all_code_points(random_: random.Random) -> Iterator[str]:
    """Every code point once, in runs of sixteen, and assigned ones between spaces as well."""
    step = 16
    for start in range(0, 0x110000, step):
        run = [chr(c) for c in range(start, start + step) if not 0xD800 <= c < 0xE000]
        yield "".join(run)
        assigned = [c for c in run if unicodedata.category(c) not in ("Cn", "Co")]
        if assigned:
            yield " ".join(assigned)
            yield "a" + "b".join(random_.sample(assigned, len(assigned))) + "1"


def every_short_blank_run(random_: random.Random) -> Iterator[str]:
    """All runs of one to three blanks, in four surroundings; the look-ahead rules live here."""
    runs = [""]
    for _ in range(3):
        runs = [run + blank for run in runs for blank in BLANKS]
        for run in runs:
            yield from (run, f"x{run}", f"{run}x", f"x{run}y", f"1{run}!")


def long_blank_runs(random_: random.Random) -> Iterator[str]:
    for _ in range(4000):
        parts = [random_.choice(BLANKS[:4] if random_.random() < 0.8 else BLANKS) for _ in range(random_.randrange(12))]
        words = random_.choices(["x", "end", ".", "1", "é", "中", "'s"], k=2)
        yield words[0] + "".join(part * random_.choice([1, 1, 2, 3, 7, 16]) for part in parts) + words[1]


def numbers(random_: random.Random) -> Iterator[str]:
    for _ in range(6000):
        text = ""
        for _ in range(random_.randrange(1, 5)):
            digits = random_.choice(DIGITS)
            text += "".join(random_.choices(digits, k=random_.choice([1, 1, 2, 3, 4, 5, 7, 10])))
            text += random_.choice(["", " ", ".", ",", "a", "-", "\n", "  ", "é", "'"])
        yield random_.choice(["", " ", "x", "\n", "  "]) + text


def contractions(random_: random.Random) -> Iterator[str]:
    """Every case of every ending, with letters that fold to one of theirs (U+017F), and near misses."""
    for ending in ENDINGS:
        spellings = {""}
        for letter in ending:
            forms = {letter, letter.upper()} | ({"\u017f"} if letter == "s" else set())
            spellings = {spelling + form for spelling in spellings for form in forms}
        for spelling in sorted(spellings):
            for apostrophe in APOSTROPHES:
                for before in ("", "I", "it", " ", "1", "!", "é", "\n", "'"):
                    for after in ("", " ", "x", "X", "1", "'", "\u0301", "\n"):
                        yield before + apostrophe + spelling + after


def controls(random_: random.Random) -> Iterator[str]:
    codes = [chr(c) for c in (*range(32), *range(0x7F, 0xA0), 0xAD, 0x200B, 0x200D, 0x200E, 0x2060, 0xFEFF, 0xFFFD)]
    for code in codes:
        yield from (code, f"a{code}b", f" {code} ", f"a {code}", f"{code}{code}", f"'s{code}", f"1{code}2", f"{code}\n")
    for _ in range(1000):
        yield "".join(random_.choices(codes + list("ab 1."), k=random_.randrange(2, 12)))


def emoji(random_: random.Random) -> Iterator[str]:
    for _ in range(4000):
        parts = [random_.choice(EMOJI) for _ in range(random_.randrange(1, 6))]
        joiner = random_.choice(["", "", " ", "\u200d", "\ufe0f", "\U0001f3fd"])
        text = joiner.join(parts)
        cut = random_.randrange(len(text) + 1)
        yield random_.choice([text, text[:cut], text[cut:], "a" + text + "b"])


def compositions(random_: random.Random) -> Iterator[str]:
    """For NFC: bases, marks in any order and number, Hangul in pieces, exclusions and singletons."""
    for _ in range(8000):
        text = ""
        for _ in range(random_.randrange(1, 5)):
            text += random_.choice("aeiouycnsAEZgk \u03b1\u0438\u0915\u304b\u05d0" + UNSTABLE)
            text += "".join(random_.choices(MARKS + UNSTABLE, k=random_.choice([0, 1, 1, 2, 3, 5])))
        yield text
    for count in (30, 31, 32, 33, 64, 200):
        yield "e" + "\u0301" * count
        yield "e" + "".join(random_.choices(MARKS, k=count)) + "x"


def prose(random_: random.Random) -> Iterator[str]:
    """Pieces of sentences in many scripts, cut anywhere and joined without respect for it."""
    for text in LANGUAGES:
        yield text
        yield from text.split()
    for _ in range(12000):
        text = ""
        for _ in range(random_.choice([1, 1, 2, 3])):
            sentence = random_.choice(LANGUAGES)
            at = random_.randrange(len(sentence))
            text += sentence[at : at + random_.choice([1, 3, 8, 20, 60])]
        yield text if random_.random() < 0.8 else random_.choice([text.upper(), text.title(), text.swapcase()])


def code(random_: random.Random) -> Iterator[str]:
    yield from CODE
    lines = [line for text in CODE for line in text.split("\n")]
    yield from lines
    for _ in range(6000):
        chosen = random_.choices(lines, k=random_.randrange(1, 4))
        text = random_.choice(["\n", "\r\n", "\n\n", " "]).join(chosen)
        at = random_.randrange(len(text) + 1)
        yield text[at : at + random_.choice([5, 20, 80])]


def noise(random_: random.Random) -> Iterator[str]:
    """Code points of all blocks at random, and ASCII at random."""
    ascii_ = [chr(c) for c in range(128)]
    assigned = [chr(c) for c in range(0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]
    mixed = "aZ09 \n'.,;-_(){}[]\"éßñαЖعא中あ한กद\u0301\u200d🙂\u00bd"
    for _ in range(8000):
        yield "".join(random_.choices(ascii_, k=random_.randrange(1, 30)))
        yield "".join(random_.choices(assigned, k=random_.randrange(1, 12)))
        yield "".join(random_.choices(mixed, k=random_.randrange(1, 24)))


def runs(random_: random.Random) -> Iterator[str]:
    """One character many times, and two in turn."""
    for character in "a!_-=.#*0 \nA'/中あ한é🙂\u0301\x00ab":
        for count in (*range(2, 20), 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 500, 1000):
            yield character * count
            if count < 70:
                yield ("x" + character) * count
                yield "x" + character * count + "y"


def sentencepiece_traps(random_: random.Random) -> Iterator[str]:
    """The prefix rule, the mark itself in the text, and spellings of byte tokens."""
    starts = [
        "",
        " ",
        "  ",
        "   ",
        "▁",
        "▁▁",
        " ▁",
        "▁ ",
        "\n",
        "\n ",
        "\t",
        "<0x41>",
        "<0x",
        "0x41>",
        "\xa0",
        "\u3000",
    ]
    for start in starts:
        for middle in (
            "",
            "Hello",
            "hello world",
            "▁",
            "a▁b",
            "a ▁ b",
            "<0x0A>",
            "<s>",
            "</s>",
            "🦙",
            "ꙮ",
            "1",
            "e\u0301",
        ):
            for end in ("", " ", "  ", "▁", "\n", ".", "<0xE2>"):
                yield start + middle + end
    for count in range(21):
        yield " " * count + "x"
        yield "\t" * count + "x"
        yield "x" + " " * count
        yield "def f():\n" + " " * count + "return 1\n"


GENERATORS: list[Generator] = [
    all_code_points,
    every_short_blank_run,
    long_blank_runs,
    numbers,
    contractions,
    controls,
    emoji,
    compositions,
    prose,
    code,
    noise,
    runs,
    sentencepiece_traps,
]


def base_corpus(seed: int = 1) -> Iterator[tuple[str, str]]:
    """Pairs of a generator's name and a string."""
    for generator in GENERATORS:
        for text in generator(random.Random(f"{seed} {generator.__name__}")):
            yield generator.__name__, text


def added_corpus(texts: list[str], seed: int = 1, count: int = 8000) -> Iterator[tuple[str, str]]:
    """Added tokens adjacent, nested, overlapping, cut short, and between ordinary text."""
    random_ = random.Random(f"{seed} added")
    if not texts:
        return
    few = sorted(texts, key=lambda text: (len(text), text))
    few = few if len(few) < 400 else random_.sample(few, 300)
    for text in few:
        for at in range(len(text) + 1) if len(few) < 40 else (1, len(text) - 1):
            yield "added", text[:at] + text + text[at:]
            yield "added", text[:at] + text[at + 1 :]
        yield from (("added", other) for other in (text, f" {text} ", f"{text}x", f"x{text}", f"{text}\n{text}"))
    plain = [
        "",
        " ",
        "x",
        " x",
        "\n",
        "Hello world",
        "▁",
        "  ",
        "1",
        "'s",
        "e",
        "\u0301",
        "<",
        "<|",
        "|>",
        "🙂",
        "\x00",
    ]
    for _ in range(count):
        parts = []
        for _ in range(random_.randrange(1, 6)):
            text = random_.choice(few)
            if random_.random() < 0.25:
                at = random_.randrange(len(text) + 1)
                text = random_.choice([text[:at], text[at:]])
            parts += [text, random_.choice(plain) if random_.random() < 0.6 else ""]
        yield "added", "".join(parts)


def vocabulary_corpus(pieces: list[bytes], seed: int = 1) -> Iterator[tuple[str, str]]:
    """Every piece that is text, alone, after a space, and against another one."""
    random_ = random.Random(f"{seed} vocabulary")
    texts = []
    for piece in pieces:
        try:
            texts.append(piece.decode().replace("▁", " "))
        except UnicodeDecodeError:
            continue
    for text in texts:
        yield "vocabulary", text
        yield "vocabulary", " " + text
        if random_.random() < 0.25:
            yield "vocabulary", text + random_.choice(texts)
