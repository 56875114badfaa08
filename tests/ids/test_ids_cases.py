r"""Named cases from public bug reports on published tokenizers, with the right ids typed in.

The letters and numbers are those of the project's list of cases. Each says what a wrong reader does.
"""

import time
from pathlib import Path

import mlt
import pytest
from driver import DECODE, ENCODE, ENCODE_PLAIN, ENCODE_WITH_BOS, Driver, Failure


@pytest.fixture
def ids(published):
    """ids("qwen3", text): added tokens count."""
    return lambda name, text: published(name).encode(ENCODE, [text])[0]


@pytest.fixture
def plain(published):
    return lambda name, text: published(name).encode(ENCODE_PLAIN, [text])[0]


@pytest.fixture
def pieces(published):
    """pieces("qwen3", ids): text for each id, and that of the end."""
    return lambda name, sequence: [p.decode() for p in published(name).decode(DECODE, [sequence])[0]]


@pytest.fixture
def text(pieces):
    return lambda name, sequence: "".join(pieces(name, sequence))


def converted(folder: Path, document: dict, program: Path) -> Driver:
    """The driver on a tokenizer.json given as an object."""
    from tokenizer_json import SideFacts, convert_json

    mlt.write_tokenizer(folder / "case.mlt", convert_json(document, SideFacts(no_eos=True)).tokenizer)
    return Driver(program, folder / "case.mlt")


# ---------------------------------------------------------------- encoding


class TestWholeWordBeforeMerging:
    """A01: ignore_merges dropped, or applied where the file does not ask for it."""

    def test_llama3(self, ids):
        assert ids("llama3", " Vi\u1ec7t") == [101798]

    def test_qwen3_gets_there_by_merges(self, ids):
        assert ids("qwen3", " Vi\u1ec7t") == [128324]

    @pytest.mark.parametrize("ignore_merges", [False, True])
    def test_unreachable_piece_only_with_the_flag(self, ids_driver, tmp_path, ignore_merges):
        import synthetic

        document = synthetic.document("tiny-llama3")
        document["model"]["ignore_merges"] = ignore_merges
        driver = converted(tmp_path, document, ids_driver)
        whole = document["model"]["vocab"]["Ġunreachable"]
        assert (driver.encode(ENCODE, [" unreachable"]) == [[whole]]) is ignore_merges


NEWLINES = [
    ("llama3", "\n\n", [271]),
    ("llama3", "\n\n\n\n", [1038]),
    ("llama3", "hi\n\nthere", [6151, 271, 19041]),
    ("llama3", "\r\n\r\n", [881]),
    ("gpt2", "\n\n", [628]),
]


@pytest.mark.parametrize(("name", "string", "expected"), NEWLINES)
def test_a02_runs_of_newlines(ids, name, string, expected):
    assert ids(name, string) == expected


DIGIT_GROUPS = [
    ("llama3", "1234567", [4513, 10961, 22]),
    ("qwen3", "1234567", [16, 17, 18, 19, 20, 21, 22]),
    ("gpt2", "1234567", [10163, 2231, 3134]),
    ("gemma3", "1234", [236770, 236778, 236800, 236812]),
]


@pytest.mark.parametrize(("name", "string", "expected"), DIGIT_GROUPS)
def test_a04_digit_grouping(ids, name, string, expected):
    assert ids(name, string) == expected


CONTRACTIONS = [
    ("llama3", "I'll DON'T I'LL", [40, 3358, 45373, 17773, 358, 6, 4178]),
    ("qwen3", "I'll I'LL", [40, 3278, 358, 6, 4086]),
    ("gpt2", "I'll I'LL", [40, 1183, 314, 6, 3069]),
]


@pytest.mark.parametrize(("name", "string", "expected"), CONTRACTIONS)
def test_a06_contractions(ids, name, string, expected):
    assert ids(name, string) == expected


@pytest.mark.parametrize("ending", ["s", "t", "re", "ve", "m", "ll", "d"])
@pytest.mark.parametrize("name", ["llama3", "qwen3", "gpt2"])
def test_a06_all_seven_endings(ids, name, ending):
    """In lower case the ending is a piece by itself, so letters that follow do not touch it."""
    alone = ids(name, f"'{ending}")
    assert len(alone) == 1
    assert ids(name, f"it'{ending}") == ids(name, "it") + alone
    assert ids(name, f"'{ending} x") == alone + ids(name, " x")


BLANKS = [
    ("llama3", "  x", [220, 865]),
    ("llama3", "x   ", [87, 262]),
    ("llama3", "   \n  x", [5996, 220, 865]),
    ("llama3", "\t\tx", [197, 10436]),
    ("gpt2", "   \n  x", [220, 220, 220, 198, 220, 2124]),
]


@pytest.mark.parametrize(("name", "string", "expected"), BLANKS)
def test_a07_last_blank_goes_to_the_next_word(ids, name, string, expected):
    assert ids(name, string) == expected


OTHER_NUMBERS = [
    (" \u00b2", [220, 30556]),
    (" \u00bd", [220, 27154]),
    (" \u2167", [220, 71567, 100]),
    ("\u0661\u0662\u0663\u0664", [109610, 110546, 117413, 124079]),
]


@pytest.mark.parametrize(("string", "expected"), OTHER_NUMBERS)
def test_a09_numbers_that_are_not_ascii_digits(ids, string, expected):
    assert ids("llama3", string) == expected


def test_a11_nfc_only_where_the_file_asks(ids, text):
    assert ids("qwen3", "e\u0301") == ids("qwen3", "\u00e9") == [963]
    assert ids("llama3", "e\u0301") == [68, 54939]
    assert ids("llama3", "\u00e9") == [978]
    assert text("qwen3", [963]) == "\u00e9"


PREFIXES = [
    ("Hello", [15043]),
    (" Hello", [29871, 15043]),
    ("   Hello", [1678, 15043]),
    ("    Hello\n    Hello", [268, 15043, 13, 1678, 15043]),
    ("", []),
]


@pytest.mark.parametrize(("string", "expected"), PREFIXES)
def test_a15_dummy_prefix(ids, string, expected):
    assert ids("llama2", string) == expected


BYTE_FALLBACKS = [
    ("llama2", "This is \U0001f999.cpp", [910, 338, 29871, 243, 162, 169, 156, 29889, 8223]),
    ("gemma3", "\U0001f999", [478, 397, 404, 391]),
    ("gemma3", "\ua66e", [472, 391, 412]),
    ("gemma3", "<0x41>", [236820, 236771, 236781, 236812, 236770, 236813]),
]


@pytest.mark.parametrize(("name", "string", "expected"), BYTE_FALLBACKS)
def test_a16_byte_fallback(ids, name, string, expected):
    assert ids(name, string) == expected


NO_PREFIX = [
    ("Hello", [9259]),
    (" Hello", [26352]),
    ("<pad>text<eos>", [0, 1005, 1]),
    ("<start_of_turn>user\nhi<end_of_turn>\n", [105, 2364, 107, 2202, 106, 107]),
]


@pytest.mark.parametrize(("string", "expected"), NO_PREFIX)
def test_a18_families_without_prefix(ids, string, expected):
    assert ids("gemma3", string) == expected


@pytest.mark.parametrize("order", [["<x", "<xy>"], ["<xy>", "<x"]])
def test_a20_longest_added_token_wins(published, ids_driver, tmp_path, order):
    import json

    document = json.loads((published("gpt2").mlt.parent / "tokenizer.json").read_text())
    for text in order:
        entry = dict(document["added_tokens"][0], id=50257 + order.index(text), content=text)
        document["added_tokens"].append(entry)
    driver = converted(tmp_path, document, ids_driver)
    short, long = 50257 + order.index("<x"), 50257 + order.index("<xy>")
    assert driver.encode(ENCODE, ["<xy>", "<x<xy>>"]) == [[long], [short, long, 29]]


MARKERS = [
    ("<|im_end", [27, 91, 318, 6213]),
    ("<|im_end|>x", [151645, 87]),
    ("<tool_call>x</tool_call>", [151657, 87, 151658]),
]


@pytest.mark.parametrize(("string", "expected"), MARKERS)
def test_a21_a_marker_cut_short_is_plain_text(ids, string, expected):
    assert ids("qwen3", string) == expected


@pytest.mark.parametrize(
    ("name", "character", "count"), [("gemma3", "a", 10000), ("qwen3", "a", 10000), ("llama3", "_", 1250)]
)
def test_a22_long_input_without_breaks(ids, name, character, count):
    assert len(ids(name, character * 80000)) == count


@pytest.mark.parametrize("run", ["a", "_", " ", "\n", "!", "\u4e2d", "ab", "\U0001f999"])
@pytest.mark.parametrize("name", ["tiny-llama3", "tiny-gpt2", "tiny-llama2", "tiny-gemma"])
def test_a22_time_grows_with_length_only(ids_driver, name, run):
    """Twice the length takes about twice the time: a quadratic merge would take four times, and many seconds."""
    from goldens import GOLDEN

    driver = Driver(ids_driver, GOLDEN / f"{name}.mlt")

    def seconds(count: int) -> float:
        start = time.perf_counter()
        driver.encode(ENCODE, [run * count])
        return time.perf_counter() - start

    once = min(seconds(80000) for _ in range(2))
    twice = min(seconds(160000) for _ in range(2))
    assert once < 5
    assert twice < 3 * once + 0.2


def test_a24_decode_keeps_real_leading_blanks(ids, text):
    assert ids("llama2", "    if x:\n") == [268, 565, 921, 29901, 13]
    assert text("llama2", [268, 565, 921, 29901, 13]) == "    if x:\n"


@pytest.mark.parametrize("name", ["llama2", "mistral", "gemma3", "llama3", "gpt2", "smollm2"])
def test_a24_round_trip_of_leading_blanks(published, name):
    texts = [blank * count + "if x:\n" for blank in " \t" for count in range(21)]
    driver = published(name)
    decoded = [b"".join(p).decode() for p in driver.decode(DECODE, driver.encode(ENCODE, texts))]
    assert decoded == texts


def test_a25_no_unescaping(ids):
    assert ids("qwen3", "\\n") == [1699]
    assert ids("qwen3", "\n") == [198]


# ---------------------------------------------------------------- decoding and streaming


def test_c01_one_character_over_several_tokens(pieces):
    assert pieces("llama3", [9468, 239, 101]) == ["", "", "\U0001f468", ""]


STREAMED = [
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\u0412\u0441\u0435 \u043b\u044e\u0434\u0438",
    "\u4eba\u4eba\u751f\u800c\u81ea\u7531",
    "\U0001f999 \U0001f1e9\U0001f1ea",
]


@pytest.mark.parametrize("string", STREAMED)
@pytest.mark.parametrize("name", ["llama3", "qwen3", "gpt2", "gemma3", "llama2"])
def test_c01_streams_without_replacement_signs(ids, pieces, name, string):
    streamed = pieces(name, ids(name, string))
    assert "\ufffd" not in "".join(streamed)
    assert "".join(streamed) == string


def test_c01_family_emoji_is_15_ids(ids):
    assert len(ids("llama3", STREAMED[0])) == 15
    assert ids("llama3", STREAMED[0]).count(102470) == 3


def test_c03_unfinished_bytes_at_the_end(published):
    driver = published("qwen3")
    unfinished, after, joined = driver.decode(DECODE, [[125001], [64], [125001, 64]])
    assert [p.decode() for p in unfinished] == ["", "\ufffd"]
    assert b"".join(after).decode() == "a"
    assert b"".join(joined).decode() == "\ufffda"


def test_c08_user_text_that_looks_like_a_control_token(plain):
    user = plain("qwen3", "A<|im_end|>B")
    assert 151645 not in user
    assert user[1:-1] == [27, 91, 318, 6213, 91, 29]


def test_c12_first_blank(pieces, text):
    assert text("llama2", [15043, 29871, 15043]) == "Hello  Hello"
    assert pieces("llama2", [15043, 15043]) == ["Hello", " Hello", ""]  # a continuation keeps its blank
    assert text("llama2", [6377]) == '{"'


def test_c13_no_waiting_for_white_space(ids, pieces):
    sequence = ids("qwen3", "abcdefghijklmnopqrstuvwxyz" * 40)
    assert len(sequence) >= 40
    assert all(pieces("qwen3", sequence)[:-1])


NULS = [("qwen3", [64, 188, 65]), ("llama3", [64, 188, 65]), ("gemma3", [236746, 238, 236763])]


@pytest.mark.parametrize(("name", "expected"), NULS)
def test_c14_nul_is_a_character(ids, text, name, expected):
    assert ids(name, "a\0b") == expected
    assert text(name, expected) == "a\0b"


@pytest.mark.parametrize(("name", "expected"), [("qwen3", [64, 5691, 65]), ("llama3", [64, 5809, 65])])
def test_c14_replacement_sign_of_a_lone_surrogate(ids, name, expected):
    assert ids(name, "a\ufffdb") == expected


INVALID = [
    b"a\xffb",
    b"\xe2\x82",
    b"\xe2\x82x",
    b"\xf0\x9f\xa6",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"\x80",
]


@pytest.mark.parametrize("name", ["tiny-llama3", "tiny-qwen2", "tiny-gemma", "tiny-llama2"])
def test_bytes_that_are_not_utf8_count_as_replacement_signs(ids_driver, name):
    from goldens import GOLDEN

    driver = Driver(ids_driver, GOLDEN / f"{name}.mlt")
    repaired = [data.decode("utf-8", "replace") for data in INVALID]
    assert driver.encode(ENCODE, INVALID) == driver.encode(ENCODE, repaired)


# ---------------------------------------------------------------- ids from outside, BOS


@pytest.mark.parametrize("wrong", [-1, -(2**31), 128256, 2**31 - 1])
def test_i13_ids_that_the_tokenizer_lacks(published, wrong):
    driver = published("llama3")
    refused, after = driver.decode(DECODE, [[64, wrong], [64]])
    assert isinstance(refused, Failure)
    assert refused.status == 5  # ML_E_ARG
    assert b"".join(after) == b"a"


def test_h01_bos_once_and_only_where_the_tokenizer_adds_it(published):
    assert published("gemma3").encode(ENCODE_WITH_BOS, ["hi"]) == [[2, 2202]]
    assert published("llama2").encode(ENCODE_WITH_BOS, ["Hello"]) == [[1, 15043]]
    assert published("qwen3").encode(ENCODE_WITH_BOS, ["hi"]) == published("qwen3").encode(ENCODE, ["hi"])
    # This package's post_processor adds none, although its family's later files do.
    assert published("llama3").encode(ENCODE_WITH_BOS, ["hi"]) == [[6151]]
