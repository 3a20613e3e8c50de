"""The commands in a block of shell lines, without comments, redirections, pipes and variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_CONTINUED = re.compile(r"\\\n\s*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(\w+)")
_REDIRECTION = frozenset({"<", ">", ">>"})


def commands(text: str) -> Iterator[list[str]]:
    """Each command's words. ``NAME=value`` before a command is left out; alone it is what ``$NAME`` is after it.

    Raises KeyError for a variable that the block does not set.
    """
    variables: dict[str, str] = {}
    for line in _CONTINUED.sub(" ", text).splitlines():
        for words in _parts(line):
            while words and (assigned := _ASSIGNED.fullmatch(words[0])):
                variables[assigned[1]] = assigned[2]
                words = words[1:]
            if words:
                yield [_VARIABLE.sub(lambda found: variables[found[1]], word) for word in words]


def _parts(line: str) -> Iterator[list[str]]:
    """The words between the operators of one line, the file of a redirection left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    skip = False
    for word in lexer:
        if set(word) <= set("();<>|&"):
            if word in _REDIRECTION and words[-1:] in (["1"], ["2"]):
                words.pop()
            if word not in _REDIRECTION:
                yield words
                words = []
            skip = word in _REDIRECTION
        elif skip:
            skip = False
        else:
            words.append(word)
    yield words
