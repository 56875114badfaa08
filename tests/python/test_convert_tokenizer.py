"""tokenizer.json to .mlt: what is expressed, what is refused by name, and the command line."""

import json

import convert_tokenizer
import mlt
import pytest
from tokenizer_documents import BYTE_LEVEL, byte_level, entry, sentencepiece, sequence, split, template
from tokenizer_json import SideFacts, convert_json
from tokenizer_parts import FROM_BYTES, GPT2, LLAMA3, QWEN2, QWEN35, SPACE_TO_MARK, STRIP_ONE
from tokenizer_vocab import TokenizerError

NO_STRIP = {"type": "Sequence", "decoders": FROM_BYTES}
DIGITS = {"type": "Digits", "individual_digits": True}


def convert(document, **side):
    side.setdefault("no_eos", "eos" not in side)
    return convert_json(document, SideFacts(**side))


def changed(document, **parts):
    """A document with other parts; model__name changes one of the model."""
    for name, value in parts.items():
        if name.startswith("model__"):
            document["model"][name.removeprefix("model__")] = value
        else:
            document[name] = value
    return document


# ---------------------------------------------------------------- what is expressed


def test_byte_level_pieces_become_bytes():
    tokenizer = convert(byte_level()).tokenizer
    assert tokenizer.kind == mlt.KIND_BYTE_LEVEL
    assert [tokenizer.tokens[byte].data for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert [token.data for token in tokenizer.tokens[256:]] == [b"ab", b"abc", b" a", b"<s>"]
    assert [token.attr for token in tokenizer.tokens] == [0] * 259 + [mlt.ATTR_ADDED]
    assert tokenizer.merges.tolist() == [[97, 98, 256], [256, 99, 257], [32, 97, 258]]
    assert (tokenizer.bos, tokenizer.eos, tokenizer.flags) == (-1, -1, 0)


def test_sentencepiece_pieces_stay_text():
    tokenizer = convert(sentencepiece()).tokenizer
    assert tokenizer.kind == mlt.KIND_SENTENCEPIECE
    assert tokenizer.tokens[2 + 0x41] == mlt.Token(b"A", mlt.ATTR_BYTE)
    assert tokenizer.tokens[262] == mlt.Token("▁a".encode())
    assert [token.attr for token in tokenizer.tokens[:2]] == [mlt.ATTR_ADDED] * 2


FLAGS = [
    (byte_level, {}, 0),
    (byte_level, {"model__ignore_merges": True}, mlt.FLAG_IGNORE_MERGES),
    (byte_level, {"normalizer": {"type": "NFC"}}, mlt.FLAG_NFC),
    (byte_level, {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}}, mlt.FLAG_NFC),
    (byte_level, {"normalizer": {"type": "Sequence", "normalizers": []}}, 0),
    (byte_level, {"pre_tokenizer": sequence(split(QWEN2), BYTE_LEVEL)}, mlt.FLAG_ONE_DIGIT),
    (byte_level, {"pre_tokenizer": sequence(split(QWEN35), BYTE_LEVEL)}, mlt.FLAG_ONE_DIGIT | mlt.FLAG_MARKS),
    (byte_level, {"pre_tokenizer": sequence(split(GPT2), BYTE_LEVEL)}, mlt.FLAG_GPT2),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3, "Removed", True), BYTE_LEVEL)}, 0),
    (byte_level, {"pre_tokenizer": BYTE_LEVEL | {"use_regex": True}}, mlt.FLAG_GPT2),
    (
        byte_level,
        {"pre_tokenizer": sequence(DIGITS, BYTE_LEVEL | {"use_regex": True})},
        mlt.FLAG_GPT2 | mlt.FLAG_SPLIT_DIGITS,
    ),
    (byte_level, {"pre_tokenizer": sequence(DIGITS, split(LLAMA3), BYTE_LEVEL)}, mlt.FLAG_SPLIT_DIGITS),
    (byte_level, {"pre_tokenizer": sequence(sequence(DIGITS, split(LLAMA3)), BYTE_LEVEL)}, mlt.FLAG_SPLIT_DIGITS),
    (sentencepiece, {}, 0),
    (sentencepiece, {"normalizer": SPACE_TO_MARK, "decoder": NO_STRIP}, mlt.FLAG_NO_PREFIX),
]


@pytest.mark.parametrize(("document", "parts", "flags"), FLAGS)
def test_flags(document, parts, flags):
    assert convert(changed(document(), **parts)).tokenizer.flags == flags


def metaspace(scheme, **options):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False} | options


@pytest.mark.parametrize(
    ("scheme", "decoder", "flags"),
    [
        ("first", [*FROM_BYTES, STRIP_ONE], mlt.FLAG_PREFIX_FIRST),
        ("never", FROM_BYTES, mlt.FLAG_NO_PREFIX),
    ],
)
def test_metaspace(scheme, decoder, flags):
    parts = {"normalizer": None, "pre_tokenizer": metaspace(scheme)}
    document = changed(sentencepiece(), **parts, decoder={"type": "Sequence", "decoders": decoder})
    assert convert(document).tokenizer.flags == flags


def test_a_split_at_spaces_after_their_replacement_does_nothing():
    idle = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    document = changed(sentencepiece(), normalizer=SPACE_TO_MARK, decoder=NO_STRIP, pre_tokenizer=idle)
    assert convert(document).tokenizer.flags == mlt.FLAG_NO_PREFIX


# ---------------------------------------------------------------- merge rules


def test_a13_both_spellings_of_merges_give_the_same_file():
    as_lists = byte_level()
    as_texts = changed(byte_level(), model__merges=[" ".join(rule) for rule in as_lists["model"]["merges"]])
    assert convert(as_texts).tokenizer.pack() == convert(as_lists).tokenizer.pack()


def test_a13_no_merges_is_an_error():
    with pytest.raises(TokenizerError, match=r"merges is empty although there are 259 pieces"):
        convert(changed(byte_level(), model__merges=[]))
    document = byte_level()
    del document["model"]["merges"]
    with pytest.raises(TokenizerError, match="merges is missing"):
        convert(document)


def test_256_pieces_need_no_merges():
    document = changed(byte_level(), model__merges=[], added_tokens=[entry(256, "<s>")])
    document["model"]["vocab"] = {piece: id_ for piece, id_ in document["model"]["vocab"].items() if id_ < 256}
    assert convert(document).tokenizer.merges.shape == (0, 3)


def test_of_a_rule_given_twice_the_last_counts():
    """As in the tokenizers library, which keeps the later rank."""
    conversion = convert(changed(byte_level(), model__merges=["a b", "ab c", "Ġ a", "a b"]))
    assert conversion.tokenizer.merges.tolist() == [[256, 99, 257], [32, 97, 258], [97, 98, 256]]
    assert any("given twice" in note for note in conversion.notes)


@pytest.mark.parametrize(
    ("merges", "words"),
    [
        (["a b c"], "rule 0 is 'a b c', not two pieces"),
        ([["a"]], "not two pieces"),
        ([["a", 1]], "not two pieces"),
        ([5], "not two pieces"),
        (["a b", "a xyz"], "rule 1 needs 'xyz'"),
        (["b a"], "rule 0 needs 'ba'"),
    ],
)
def test_bad_merges(merges, words):
    with pytest.raises(TokenizerError, match=words):
        convert(changed(byte_level(), model__merges=merges))


# ---------------------------------------------------------------- refusals

LOWERCASE = {"type": "Lowercase"}
REFUSED = [
    (byte_level, {"model": None}, "no model section"),
    (byte_level, {"model__type": "Unigram"}, "model Unigram"),
    (byte_level, {"model__type": "WordPiece"}, "model WordPiece"),
    (byte_level, {"model__type": "WordLevel"}, "model WordLevel"),
    (byte_level, {"model__dropout": 0.1}, "model.dropout 0.1"),
    (byte_level, {"model__continuing_subword_prefix": "##"}, "continuing_subword_prefix '##'"),
    (byte_level, {"model__end_of_word_suffix": "</w>"}, "end_of_word_suffix '</w>'"),
    (byte_level, {"model__vocab": {}}, "vocab is missing or empty"),
    (byte_level, {"model__vocab": {"a": -1}}, "the id of 'a' is -1"),
    (byte_level, {"model__vocab": {"a": 2**24}}, "16777216"),
    (byte_level, {"model__vocab": {"a": True}}, "True"),
    (byte_level, {"model__vocab": {"a": 1, "b": 1}}, "belongs to several pieces"),
    (byte_level, {"model__byte_fallback": True}, "byte_fallback with a ByteLevel"),
    (byte_level, {"normalizer": LOWERCASE}, "normalizer Lowercase"),
    (byte_level, {"normalizer": {"type": "NFKC"}}, "normalizer NFKC"),
    (byte_level, {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, LOWERCASE]}}, "Lowercase"),
    (byte_level, {"pre_tokenizer": BYTE_LEVEL}, "without any pattern"),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3), BYTE_LEVEL | {"add_prefix_space": True})}, "ByteLevel"),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3), BYTE_LEVEL | {"use_regex": True})}, "several patterns"),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3), split(QWEN2), BYTE_LEVEL)}, "several patterns"),
    (byte_level, {"pre_tokenizer": sequence(split(r"\p{L}+|."), BYTE_LEVEL)}, r"pre_tokenizer Split .*\\\\p"),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3, "Removed"), BYTE_LEVEL)}, "Removed"),
    (byte_level, {"pre_tokenizer": sequence(split(LLAMA3, "MergedWithNext"), BYTE_LEVEL)}, "MergedWithNext"),
    (byte_level, {"pre_tokenizer": sequence(DIGITS | {"individual_digits": False}, BYTE_LEVEL)}, "Digits"),
    (byte_level, {"pre_tokenizer": sequence({"type": "Whitespace"}, BYTE_LEVEL)}, "pre_tokenizer Whitespace"),
    (byte_level, {"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer Whitespace"),
    (byte_level, {"pre_tokenizer": None}, "both missing"),
    (byte_level, {"decoder": None}, "decoder none"),
    (byte_level, {"decoder": {"type": "WordPiece"}}, "decoder WordPiece"),
    (byte_level, {"post_processor": {"type": "RobertaProcessing"}}, "post_processor RobertaProcessing"),
    (sentencepiece, {"normalizer": LOWERCASE}, "normalizer Lowercase"),
    (sentencepiece, {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA=="}}, "Precompiled"),
    (sentencepiece, {"normalizer": None, "pre_tokenizer": metaspace("always")}, "Metaspace .*always"),
    (sentencepiece, {"normalizer": None, "pre_tokenizer": metaspace("first", split=True)}, "Metaspace"),
    (sentencepiece, {"normalizer": None, "pre_tokenizer": metaspace("first", replacement="_")}, "Metaspace"),
    (sentencepiece, {"pre_tokenizer": metaspace("first")}, "pre_tokenizer Metaspace"),
    (sentencepiece, {"model__ignore_merges": True}, "ignore_merges without"),
    (sentencepiece, {"model__byte_fallback": False}, "byte_fallback is off"),
    (sentencepiece, {"decoder": NO_STRIP}, "decoder without Strip"),
    (sentencepiece, {"decoder": {"type": "Metaspace"}}, "decoder Metaspace"),
    (sentencepiece, {"normalizer": SPACE_TO_MARK}, "decoder without prefix rule but with Strip"),
]


@pytest.mark.parametrize(("document", "parts", "words"), REFUSED)
def test_refused_by_name(document, parts, words):
    with pytest.raises(TokenizerError, match=words) as error:
        convert(changed(document(), **parts))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("options", [{"unk_token": "<unk>"}, {"unk_token": None}])
def test_missing_byte_pieces_matter_only_with_an_unknown_token(options):
    document = changed(sentencepiece(), model__unk_token=options["unk_token"])
    vocab = document["model"]["vocab"]
    vocab["x"] = vocab.pop("<0x41>")
    if options["unk_token"] is None:
        assert convert(document).tokenizer.tokens[2 + 0x41].data == b"x"
    else:
        with pytest.raises(TokenizerError, match=r"unk_token '<unk>' is in use, since 1 byte pieces are missing"):
            convert(document)


def test_a_piece_outside_the_byte_alphabet():
    """Never reached by merges; refused where its bytes could be taken for a word or for another piece."""
    document = byte_level()
    document["model"]["vocab"]["a b"] = 259  # a literal space
    document["added_tokens"] = []
    assert convert(document).tokenizer.tokens[259].data == b"a b"
    with pytest.raises(TokenizerError, match=r"'a b' \(id 259\) is not spelled in the byte alphabet"):
        convert(changed(document, model__ignore_merges=True))


# ---------------------------------------------------------------- added tokens


@pytest.mark.parametrize("option", ["single_word", "lstrip", "rstrip"])
def test_added_token_options(option):
    with pytest.raises(TokenizerError, match=f"added token '<s>' has {option}"):
        convert(changed(byte_level(), added_tokens=[entry(259, "<s>", **{option: True})]))


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ([entry(300, "<s>")], "has id 300, but the tokenizers library gives it 259"),
        ([entry(259, "<s>"), entry(260, "<s>")], "has id 260, but the tokenizers library gives it 259"),
        ([entry(5, "ab")], "'ab' has id 5, but the tokenizers library gives it 256"),
        ([{"content": "<s>"}], "lacks content or id"),
    ],
)
def test_added_token_ids(added, words):
    with pytest.raises(TokenizerError, match=words):
        convert(changed(byte_level(), added_tokens=added))


NORMALIZED = [
    (byte_level, {}, "<s>", True),
    (byte_level, {"normalizer": {"type": "NFC"}}, "<s>", True),
    (byte_level, {"normalizer": {"type": "NFC"}}, "<\u00e9>", False),
    (sentencepiece, {}, "<x>", False),
    (sentencepiece, {"normalizer": SPACE_TO_MARK, "decoder": NO_STRIP}, "<x>", True),
    (sentencepiece, {"normalizer": SPACE_TO_MARK, "decoder": NO_STRIP}, "< x>", False),
    (sentencepiece, {"normalizer": None, "pre_tokenizer": metaspace("first")}, "< x>", True),
]


@pytest.mark.parametrize(("document", "parts", "content", "fine"), NORMALIZED)
def test_added_token_with_normalized(document, parts, content, fine):
    document = changed(document(), **parts)
    document["added_tokens"] = [entry(len(document["model"]["vocab"]), content, normalized=True)]
    if fine:
        convert(document)
    else:
        with pytest.raises(TokenizerError, match="has normalized"):
            convert(document)


@pytest.mark.parametrize("other", ["<s><t>", "t><x", "<s", "><s"])
def test_normalized_added_tokens_are_looked_for_after_the_others(other):
    first = "<x>" if other == "t><x" else "<s>"
    document = changed(byte_level(), added_tokens=[entry(259, first, normalized=True), entry(260, other)])
    with pytest.raises(TokenizerError, match="may overlap with"):
        convert(document)


def test_holes_become_empty_tokens():
    document = byte_level()
    document["model"]["vocab"]["zz"] = 270
    document["added_tokens"] = []
    conversion = convert(document)
    assert len(conversion.tokenizer.tokens) == 271
    assert conversion.tokenizer.tokens[265] == mlt.Token(b"")
    assert any("11 ids below 271 have no token" in note for note in conversion.notes)


def test_what_is_left_out_is_noted():
    document = changed(byte_level(), truncation={"max_length": 3}, padding={"strategy": "BatchLongest"})
    document["added_tokens"].append(entry(260, "\u00e9\u00e9"))
    notes = " ".join(convert(document).notes)
    assert "truncation is left out" in notes and "padding is left out" in notes
    assert "added token '\u00e9\u00e9' decodes to itself" in notes


# ---------------------------------------------------------------- BOS and EOS

BOS_FIRST = template("<s>", ids={"<s>": [259]})


@pytest.mark.parametrize(
    "post_processor",
    [BOS_FIRST, {"type": "Sequence", "processors": [BYTE_LEVEL, BOS_FIRST]}],
)
def test_bos_of_the_post_processor(post_processor):
    tokenizer = convert(changed(byte_level(), post_processor=post_processor)).tokenizer
    assert (tokenizer.bos, tokenizer.flags) == (259, mlt.FLAG_BOS)


@pytest.mark.parametrize("post_processor", [None, BYTE_LEVEL, template(ids={})])
def test_no_bos(post_processor):
    tokenizer = convert(changed(byte_level(), post_processor=post_processor), bos="<s>").tokenizer
    assert (tokenizer.bos, tokenizer.flags) == (259, 0)


@pytest.mark.parametrize(
    ("post_processor", "words"),
    [
        (template("<s>", "<s>", ids={"<s>": [259]}), "more than one token"),
        (template(after="<s>", ids={"<s>": [259]}), "more than one token|behind"),
        (template("<s>", ids={"<s>": [259, 3]}), "one is expected"),
        (template("<s>", ids={"<s>": [999]}), "999, which the vocabulary lacks"),
        (template("<s>", ids={}), "one is expected"),
    ],
)
def test_bad_post_processors(post_processor, words):
    with pytest.raises(TokenizerError, match=words):
        convert(changed(byte_level(), post_processor=post_processor))


def test_settings_decide_over_the_post_processor():
    with_template = changed(byte_level(), post_processor=BOS_FIRST)
    off = convert(with_template, add_bos=False)
    assert (off.tokenizer.bos, off.tokenizer.flags) == (259, 0)
    assert any("add_bos_token False decides" in note for note in off.notes)
    assert convert(byte_level(), bos="<s>", add_bos=True).tokenizer.flags == mlt.FLAG_BOS
    with pytest.raises(TokenizerError, match="no bos_token is named"):
        convert(byte_level(), add_bos=True)
    with pytest.raises(TokenizerError, match="bos_token 'ab' is 256"):
        convert(with_template, bos="ab")
    with pytest.raises(TokenizerError, match="'<e>' is not in the vocabulary"):
        convert(byte_level(), eos="<e>")


# ---------------------------------------------------------------- files and command line


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    document = byte_level()
    document["added_tokens"].append(entry(260, "</s>"))
    (tmp_path / "in" / "tokenizer.json").write_text(json.dumps(document))
    return tmp_path / "in"


def converted_file(folder, *options):
    out = folder.parent / "out.mlt"
    assert convert_tokenizer.main([str(folder), "-o", str(out), *options]) == 0
    return mlt.read_tokenizer(out)


CONFIGS = [
    ({"bos_token": "<s>", "eos_token": "</s>"}, {}, (259, 260, 0)),
    ({"bos_token": {"content": "<s>"}, "eos_token": {"content": "</s>"}, "add_bos_token": True}, {}, (259, 260, 1)),
    ({"bos_token": None, "eos_token": "</s>", "add_bos_token": True}, {}, (-1, 260, 0)),
    ({"bos_token": "<s>", "add_bos_token": False}, {"generation_config.json": [260, 259]}, (259, 260, 0)),
    ({}, {"config.json": 260}, (-1, 260, 0)),
    ({"eos_token": "<s>"}, {"config.json": 260}, (-1, 259, 0)),
    ({}, {"generation_config.json": 259, "config.json": 260}, (-1, 259, 0)),
    ({}, {}, (-1, -1, 0)),
]


@pytest.mark.parametrize(("config", "id_files", "expected"), CONFIGS)
def test_files_beside_it(folder, config, id_files, expected):
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for name, ids in id_files.items():
        (folder / name).write_text(json.dumps({"eos_token_id": ids}))
    tokenizer = converted_file(folder)
    assert (tokenizer.bos, tokenizer.eos, tokenizer.flags) == expected


def test_options_win_over_files(folder):
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true}')
    swapped = converted_file(folder, "--bos", "</s>", "--eos", "<s>", "--add-bos", "no")
    assert (swapped.bos, swapped.eos, swapped.flags) == (260, 259, 0)
    none = converted_file(folder, "--bos", "none", "--eos", "none")
    assert (none.bos, none.eos, none.flags) == (-1, -1, 0)


def test_report(folder, capsys):
    converted_file(folder, "--eos", "</s>")
    printed = capsys.readouterr().out
    assert "byte-level BPE" in printed and "tokens 261, 2 of them added; merge rules 3" in printed
    assert "BOS none; EOS 260 </s>; flags none" in printed


BROKEN = [
    ("tokenizer.json", "{", "not JSON"),
    ("tokenizer.json", "[]", "not a JSON object"),
    ("tokenizer.json", "[" * 100000, "not JSON"),
    ("tokenizer_config.json", '{"eos_token": 5}', "eos_token is 5"),
    ("tokenizer_config.json", '{"add_eos_token": true}', "add_eos_token cannot be expressed"),
]


@pytest.mark.parametrize(("name", "content", "words"), BROKEN)
def test_a_failure_is_one_line_and_leaves_no_file(folder, capsys, name, content, words):
    (folder / name).write_text(content)
    out = folder.parent / "out.mlt"
    out.write_bytes(b"old")
    assert convert_tokenizer.main([str(folder), "-o", str(out)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err and printed.err.count("\n") == 1
    assert out.read_bytes() == b"old"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["in", "out.mlt"]


def test_no_such_file(tmp_path, capsys):
    assert convert_tokenizer.main([str(tmp_path / "none.json"), "-o", str(tmp_path / "out.mlt")]) == 1
    assert "No such file" in capsys.readouterr().err
    assert convert_tokenizer.main([str(tmp_path), "-o", str(tmp_path / "out.mlt")]) == 1


def test_wrong_command_line(capsys):
    for arguments in (["x"], ["x", "-o", "y", "--add-bos", "maybe"]):
        with pytest.raises(SystemExit) as stop:
            convert_tokenizer.main(arguments)
        assert stop.value.code == 2
    with pytest.raises(SystemExit) as stop:
        convert_tokenizer.main(["--help"])
    assert stop.value.code == 0
    assert "--add-bos" in capsys.readouterr().out
