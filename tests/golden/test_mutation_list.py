"""The mutations of oracle/mutations.txt still fit the source. That they are found is tested by `make hf`."""

import pytest

from oracle.mutations import MUTATIONS, Mutation, read_mutations


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_there_is_one_place_to_change(root, mutation):
    text = (root / "src" / mutation.file).read_text()
    assert mutation.applied_to(text) != text


def test_the_list_is_long_and_its_names_are_unique():
    assert len({mutation.name + mutation.file for mutation in MUTATIONS}) == len(MUTATIONS) > 50


def test_places_that_are_gone_or_many_are_told():
    assert Mutation("right", "a.c", "b", "x").applied_to("abc") == "axc"
    for find in ("d", "bb"):
        with pytest.raises(AssertionError, match="times"):
            Mutation("wrong", "a.c", find, "").applied_to("abbcbb")


def test_the_list_is_read_strictly():
    assert read_mutations("# note\n\n@ a.c\n\nname\n- x\n-   y\n+ z\n\nother\n- w\n") == [
        Mutation("name", "a.c", "x\n  y", "z"),
        Mutation("other", "a.c", "w", ""),
    ]
    for wrong in ("name\n- x\n+ y", "@ a.c\nname\n+ y", "@ a.c\nname\n- x\n+y", "@ a.c\nname\n\n- x\n+ y"):
        with pytest.raises(ValueError, match="not a mutation"):
            read_mutations(wrong)
