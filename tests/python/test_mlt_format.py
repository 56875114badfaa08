"""Writer, reader and command line of .mlt files; what the Python reader refuses ml_run refuses too."""

import struct

import mlt
import numpy as np
import pytest

GOOD = mlt.Tokenizer(
    mlt.KIND_SENTENCEPIECE,
    [
        mlt.Token(b"<s>", mlt.ATTR_ADDED),
        mlt.Token(b"A", mlt.ATTR_BYTE),
        mlt.Token(b"a"),
        mlt.Token("▁".encode()),
        mlt.Token("▁a".encode()),
        mlt.Token(b""),
    ],
    np.array([[3, 2, 4]], dtype="<u4"),
    bos=0,
    eos=-1,
    flags=mlt.FLAG_BOS | mlt.FLAG_NO_PREFIX,
)
DATA = GOOD.pack()


def with_u32(offset, value, data=DATA):
    return data[:offset] + struct.pack("<I", value & 0xFFFFFFFF) + data[offset + 4 :]


def test_there_and_back():
    again = mlt.unpack(DATA)
    assert again.tokens == GOOD.tokens
    assert np.array_equal(again.merges, GOOD.merges)
    assert (again.kind, again.bos, again.eos, again.flags) == (1, 0, -1, 129)
    assert again.pack() == DATA


def test_layout_by_hand():
    assert DATA[:32] == b"MLT1" + struct.pack("<IIIIiiI", 1, 1, 6, 1, 0, -1, 129)
    assert DATA[32:40] == b"\x01" + struct.pack("<I", 3) + b"<s>"
    assert DATA[-12:] == struct.pack("<III", 3, 2, 4)


BAD = {
    "empty": b"",
    "magic": b"MLTX" + DATA[4:],
    "version": with_u32(4, 2),
    "kind 0": with_u32(8, 0),
    "kind 3": with_u32(8, 3),
    "no tokens": with_u32(12, 0),
    "more tokens than bytes": with_u32(12, 2**32 - 1),
    "more merges than bytes": with_u32(16, 2**32 - 1),
    "one merge too many": with_u32(16, 2),
    "bos -2": with_u32(20, -2),
    "bos past the end": with_u32(20, 6),
    "eos past the end": with_u32(24, 6),
    "unknown flag": with_u32(28, 512),
    "both prefix rules": with_u32(28, mlt.FLAG_PREFIX_FIRST | mlt.FLAG_NO_PREFIX),
    "two patterns": with_u32(8, 2, with_u32(28, mlt.FLAG_GPT2 | mlt.FLAG_MARKS)),
    "attr 4": DATA[:32] + b"\x04" + DATA[33:],
    "byte token of 3 bytes": DATA[:32] + b"\x02" + DATA[33:],
    "token longer than the file": with_u32(33, 2**32 - 1),
    "merge of no token": with_u32(len(DATA) - 4, 6),
}

FINE = {
    "as it is": DATA,
    "bytes behind": DATA + b"more",
    "attr 3": DATA[:32] + b"\x03" + DATA[33:],
    "flags of the other kind": with_u32(28, 511 & ~mlt.FLAG_NO_PREFIX),
    "no bos with its flag": with_u32(20, -1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(run, tmp_path, name):
    with pytest.raises(mlt.MltError) as error:
        mlt.unpack(BAD[name])
    assert error.value.status == "ML_E_FORMAT"
    (tmp_path / "bad.mlt").write_bytes(BAD[name])
    answer = run("--tokenizer", tmp_path / "bad.mlt", "--detokenize", "1")
    assert answer.status == "ML_E_FORMAT"


@pytest.mark.parametrize("name", FINE)
def test_fine_files(run, tmp_path, name):
    mlt.unpack(FINE[name])
    (tmp_path / "fine.mlt").write_bytes(FINE[name])
    assert run("--check", tmp_path / "fine.mlt").code == 0


@pytest.mark.parametrize("size", range(len(DATA)))
def test_cut_at_every_byte(size):
    with pytest.raises(mlt.MltError):
        mlt.unpack(DATA[:size])


def test_a_vocabulary_over_the_limit(tmp_path):
    """Only that is a matter of shape."""
    count = mlt.MAX_VOCAB + 1
    data = with_u32(12, count, DATA[:16] + struct.pack("<IiiI", 0, -1, -1, 0)) + bytes(5 * count)
    with pytest.raises(mlt.MltError) as error:
        mlt.unpack(data)
    assert error.value.status == "ML_E_SHAPE"


def test_the_writer_writes_nothing_bad(tmp_path):
    bad = mlt.Tokenizer(1, [mlt.Token(b"a")], bos=5)
    with pytest.raises(mlt.MltError):
        mlt.write_tokenizer(tmp_path / "bad.mlt", bad)
    assert list(tmp_path.iterdir()) == []


def test_inspect(tmp_path, capsys):
    (tmp_path / "good.mlt").write_bytes(DATA)
    assert mlt.main(["inspect", "--tokens", str(tmp_path / "good.mlt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:8] == [
        "kind 1 sentencepiece",
        "n_vocab 6",
        "n_merges 1",
        "n_added 1",
        "n_bytes 1",
        "bos 0 <s>",
        "eos -1",
        "flags 129 bos no_prefix",
    ]
    assert lines[8:] == [
        *("token 0 1 <s>", "token 1 2 A", "token 2 0 a", "token 3 0 ▁", "token 4 0 ▁a", "token 5 0 "),
        "merge 0 3 2 4",
    ]


def test_verify(tmp_path, capsys):
    (tmp_path / "good.mlt").write_bytes(DATA)
    (tmp_path / "bad.mlt").write_bytes(BAD["kind 3"])
    assert mlt.main(["verify", str(tmp_path / "good.mlt"), str(tmp_path / "bad.mlt")]) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.endswith("good.mlt: ok")
    assert "ML_E_FORMAT: kind 3 is neither 1 nor 2 (byte 8)" in bad
    assert mlt.main(["inspect", str(tmp_path / "none.mlt")]) == 1
    assert "ML_E_IO" in capsys.readouterr().err


def test_printable():
    assert mlt.printable(b"a\n\xff \\") == "a\\n\\xff \\\\"
