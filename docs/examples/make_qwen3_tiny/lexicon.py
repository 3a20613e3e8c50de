"""The vocabulary of the generated text, and an author who picks words from it."""

from __future__ import annotations

import random
from pathlib import Path

LEXICON = Path(__file__).with_name("lexicon.txt")


def read_lexicon(path: Path = LEXICON) -> dict[str, list[str]]:
    """Sections of ``path``: name to entries, commonest first; ``+`` in an entry stands for a space."""
    sections: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, entries = line.partition(":")
            sections[name] = [entry.replace("+", " ") for entry in entries.split()]
    return sections


class Author:
    """Draws the words of one document.

    Draws follow a Zipf law, so a trained model meets both words it can guess and words it cannot. A word the
    document has used already is often used again, so there is something to learn from a long context too.
    """

    def __init__(self, rng: random.Random, sections: dict[str, list[str]]) -> None:
        self.rng = rng
        self._sections = sections
        self._used: dict[str, list[str]] = {}

    def entry(self, section: str) -> str:
        """One entry of ``section`` as the lexicon spells it."""
        used = self._used.setdefault(section, [])
        if used and self.rng.random() < 0.35:
            return self.rng.choice(used)
        entries = self._sections[section]
        # A log-uniform rank is Zipf's law with exponent 1; the uniform share keeps rare words from being too rare.
        if self.rng.random() < 0.7:
            word = entries[int(len(entries) ** self.rng.random()) - 1]
        else:
            word = self.rng.choice(entries)
        used.append(word)
        return word

    def maybe(self, chance: float) -> bool:
        """True with probability ``chance``."""
        return self.rng.random() < chance

    def pick(self, *options: str) -> str:
        """One of ``options``, all equally likely."""
        return self.rng.choice(options)

    def noun(self, *, plural: bool = False) -> str:
        """A countable noun, singular unless ``plural``."""
        one, _, many = self.entry("noun").partition("/")
        if not plural:
            return one
        if many:
            return many
        if one.endswith(("s", "x", "sh", "ch")):
            return one + "es"
        return one[:-1] + "ies" if one.endswith("y") and one[-2] not in "aeo" else one + "s"

    def verb(self, section: str, form: str) -> str:
        """A verb of ``section`` as ``base``, ``past``, ``third`` (person singular) or ``ing``."""
        base, _, past = self.entry(section).partition("/")
        consonant_y = base.endswith("y") and base[-2] not in "aeo"
        doubled = len(base) < 5 and base[-1] in "bgmnpt" and base[-2] in "aeiou" and base[-3] not in "aeiou"
        if form == "base":
            return base
        if form == "past":
            if past:
                return past
            if base.endswith("e"):
                return base + "d"
            return base[:-1] + "ied" if consonant_y else base + (base[-1] if doubled else "") + "ed"
        if form == "third":
            if consonant_y:
                return base[:-1] + "ies"
            return base + ("es" if base.endswith(("s", "x", "sh", "ch", "o")) else "s")
        stem = base[:-1] if base.endswith("e") and not base.endswith("ee") else base
        return stem + (base[-1] if doubled else "") + "ing"

    def person(self) -> str:
        """A first name, now and then with a surname, a title, or a name made up from syllables."""
        roll = self.rng.random()
        if roll < 0.6:
            return self.entry("name")
        if roll < 0.75:
            return f"{self.entry('name')} {self.entry('surname')}"
        return self.coined() if roll < 0.85 else f"{self.pick('Mr', 'Mrs', 'Dr', 'Captain')} {self.entry('surname')}"

    def coined(self) -> str:
        """A name that no lexicon has: two to four syllables."""
        return "".join(self.rng.choices(self._sections["syllable"], k=self.rng.randint(2, 4))).capitalize()

    def number(self, digits: int = 3) -> int:
        """A whole number with at most ``digits`` digits, each length equally likely."""
        return self.rng.randrange(1, 10 ** self.rng.randint(1, digits))
