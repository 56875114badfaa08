"""Runs tools/convert.py in this process."""

import convert
from mlb import verify_model


def run(source, out, *options):
    assert convert.main([str(source), str(out), "--quiet", *map(str, options)]) == 0
    return verify_model(out / "model.mlb")


def refused(capsys, source, out, *options):
    """The one line of a conversion that fails and leaves nothing."""
    before = set(out.parent.glob("*"))
    assert convert.main([str(source), str(out), *map(str, options)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1 and "Traceback" not in printed.err
    assert set(out.parent.glob("*")) == before
    return printed.err
