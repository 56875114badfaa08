"""What goes wrong with files that other programs wrote, as one line that names the thing."""

from __future__ import annotations

LONGEST_LINE = 400


class CheckpointError(ValueError):
    """A model file that is broken, hostile or incomplete. The message is one line and names file, tensor or key."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """Text for a terminal: names come from the files, so control characters are escaped and the length is bounded."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def listing(names: list[str], most: int = 4) -> str:
    """Some names and how many more there are."""
    shown = ", ".join(one_line(name, 80) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
