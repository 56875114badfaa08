"""Turns templates into sentences: what tools/make_stories.py is built on. Nothing here knows a story.

A template is text with three kinds of marks:

    [a|b|]      one of the alternatives, which may be empty and may hold further marks
    {who.form}  a member of the cast in some form: {h} a name, {h.he} a pronoun, {x.a} "a red kite"
    a(n)        "a" or "an", as the next word asks

{he}, {him}, {his} and {himself} without a name before them are the hero's, {He} and so on begin a sentence. Sentences
are given their capital letters here, so that a template may begin with any mark. Every choice comes from one random
generator, so a seed is a story.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

PRONOUNS = {
    "she": {"he": "she", "him": "her", "his": "her", "himself": "herself"},
    "he": {"he": "he", "him": "him", "his": "his", "himself": "himself"},
    "it": {"he": "it", "him": "it", "his": "its", "himself": "itself"},
    "they": {"he": "they", "him": "them", "his": "their", "himself": "themselves"},
}


class TemplateError(ValueError):
    """A mark that is not closed, or that names what is not in the cast."""


@dataclass(frozen=True)
class Who:
    """Somebody. Without a name: "the owl". With an owner: "his mother", the owner's pronoun before the noun."""

    noun: str
    gender: str
    name: str = ""
    adjective: str = ""
    owner: Who | None = None

    def form(self, form: str) -> str:
        if form in PRONOUNS[self.gender]:
            return PRONOUNS[self.gender][form]
        described = f"{self.adjective} {self.noun}".strip()
        if form == "kind":
            return self.noun
        if form == "a":
            return f"a(n) {described}"
        if form == "full":
            return f"a(n) {described} named {self.name}"
        if form == "the":
            return f"the {self.noun}"
        if form == "":
            if self.owner:
                return f"{self.owner.form('his')} {self.noun}"
            return self.name or f"the {self.noun}"
        raise TemplateError(f"{self.noun} has no form {form}")


@dataclass(frozen=True)
class Thing:
    """Something: {x} "kite", {x.a} "a red kite", {x.the} "the kite", {x.full} "the red kite"."""

    noun: str
    adjective: str = ""

    def form(self, form: str) -> str:
        described = f"{self.adjective} {self.noun}".strip()
        forms = {
            "": self.noun,
            "a": f"a(n) {described}",
            "the": f"the {self.noun}",
            "full": f"the {described}",
            "own": described,
        }
        if form not in forms:
            raise TemplateError(f"{self.noun} has no form {form}")
        return forms[form]


@dataclass
class Story:
    """A story while it is told: its cast, what was said, and the key of the schema that it follows."""

    rng: random.Random
    cast: dict[str, Who | Thing | str] = field(default_factory=dict)
    paragraphs: list[list[str]] = field(default_factory=lambda: [[]])
    key: list[str] = field(default_factory=list)
    title: str = ""

    def pick(self, options: Iterable) -> object:
        """One of the options, all equally likely."""
        return self.rng.choice(list(options))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def say(self, *paraphrases: str) -> None:
        """Tells one of the paraphrases. An empty one says nothing."""
        text = self.render(self.rng.choice(paraphrases))
        if text:
            # Here, not in polish(): after "Help!" only the teller knows whether "his mother" goes on or begins anew.
            self.paragraphs[-1].append(text[0].upper() + text[1:])

    def maybe(self, probability: float, *paraphrases: str) -> None:
        if self.chance(probability):
            self.say(*paraphrases)

    def paragraph(self) -> None:
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def render(self, template: str) -> str:
        """A template without its marks, capital letters and articles excepted."""
        return _Renderer(self, template).run()

    def text(self) -> str:
        """The story so far, sentences in order."""
        return "\n\n".join(polish(" ".join(sentences)) for sentences in self.paragraphs if sentences)


class _Renderer:
    """One walk over a template, from left to right."""

    def __init__(self, story: Story, template: str) -> None:
        self.story, self.template, self.at = story, template, 0

    def run(self) -> str:
        text = self._sequence("")
        if self.at != len(self.template):
            raise TemplateError(f"a stray {self.template[self.at]} in: {self.template}")
        return re.sub(r" +(?=[ ,.!?])", "", text).strip()

    def _sequence(self, ends: str) -> str:
        parts: list[str] = []
        while self.at < len(self.template) and self.template[self.at] not in ends:
            mark = self.template[self.at]
            if mark == "[":
                parts.append(self._choice())
            elif mark == "{":
                parts.append(self._slot())
            elif mark in "]}|":
                break
            else:
                parts.append(mark)
                self.at += 1
        return "".join(parts)

    def _choice(self) -> str:
        options = []
        while True:
            self.at += 1
            options.append(self._sequence("|]"))
            if self.at == len(self.template):
                raise TemplateError(f"[ is not closed in: {self.template}")
            if self.template[self.at] == "]":
                self.at += 1
                return self.story.rng.choice(options)

    def _slot(self) -> str:
        end = self.template.find("}", self.at)
        if end < 0:
            raise TemplateError(f"{{ is not closed in: {self.template}")
        name = self.template[self.at + 1 : end]
        self.at = end + 1
        who, _, form = name.partition(".")
        if who.lower() in PRONOUNS["he"]:
            who, form = "h", who
        member = self.story.cast.get(who)
        if member is None:
            raise TemplateError(f"nobody is called {who} in: {self.template}")
        if isinstance(member, str):
            return self.story.render(member)
        text = member.form(form.lower())
        return text[0].upper() + text[1:] if form[:1].isupper() else text


# Words that begin with a vowel's letter but not its sound.
_CONSONANTS = re.compile(r"(?:uni|use|usu|one|once|eu)", re.IGNORECASE)


def polish(text: str) -> str:
    """Articles, and capital letters where a sentence begins."""

    def article(match: re.Match[str]) -> str:
        word = match[1]
        vowel = word[0].lower() in "aeiou" and not _CONSONANTS.match(word) or word.startswith(("hour", "honest"))
        return f"{match[0][0]}{'n' if vowel else ''} {word}"

    text = re.sub(r"\b[aA]\(n\) (\w+)", article, text)
    text = re.sub(r"(^|[.!?] |\.\" |[.!?]\n+)([\"']?)([a-z])", lambda m: m[1] + m[2] + m[3].upper(), text)
    # Quotation marks open and close in turn. A quotation begins with a capital letter, unless it goes on after a comma.
    parts = text.split('"')
    for i in range(1, len(parts), 2):
        if not parts[i - 1].endswith(", "):
            parts[i] = parts[i][:1].upper() + parts[i][1:]
    return '"'.join(parts)
