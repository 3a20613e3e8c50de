"""The condition of a query: comparisons joined by and, or, not. Parsed by hand; nothing is ever evaluated as Python.

Grammar::

    condition  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = "not" negation | "(" condition ")" | comparison
    comparison = operand [ order operand | ["not"] "in" "[" operand { "," operand } "]" ]
    order      = "==" | "!=" | "<" | "<=" | ">" | ">="
    operand    = number | 'text' | "text" | true | false | null | word

A word that names a field is that field; any other word, right of an operator, is a text. Values of different types are
never equal and never ordered; true is not 1. A field alone holds where its value is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

import numpy as np
from attrs import frozen

from xcfg.cube.column import ORDER, Column, Mask
from xcfg.errors import InvalidInput
from xcfg.model.codec import unknown
from xcfg.model.json import Json

Columns = Mapping[str, Column]
Condition = Callable[[Columns, int], Mask]
"""From the columns and the number of cases to the cases for which it holds."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<operator>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)
    | (?P<word>[A-Za-z_][\w.:/-]*)
    )""",
    re.VERBOSE,
)
_DEEPEST = 100
_WORDS = ("and", "or", "not", "in")
_LITERALS: Mapping[str, Json] = {"true": True, "false": False, "null": None}
_HINTS = {"=": "compare with ==", "&": "write and", "|": "write or", "!": "write not"}


@frozen
class _Token:
    kind: str
    text: str
    column: int


@frozen
class _Operand:
    """A field (``name``) or a literal (``value``)."""

    column: int
    name: str = ""
    value: Json = None

    def values(self, columns: Columns, cases: int) -> list[Json]:
        return columns[self.name].at(np.arange(cases))


@frozen(kw_only=True)
class Expression:
    """A parsed condition: ``names`` are the fields it reads, ``holds`` finds the cases in their columns."""

    names: frozenset[str]
    holds: Condition


def parse(text: str, names: Collection[str], closed: Mapping[str, Collection[str]] | None = None) -> Expression:
    """Parse ``text`` over the fields ``names``; an empty text holds for every row.

    ``closed`` gives, for fields whose values are a fixed set of words, that set: another word is a fault.
    Raises InvalidInput with the column of the fault and, for an unknown field or word, the nearest one.
    """
    parser = _Parser(_tokens(text), names, closed or {})
    condition = parser.condition() if text.strip() else lambda columns, cases: np.ones(cases, dtype=bool)
    parser.finish()
    return Expression(names=frozenset(parser.used), holds=condition)


def _fault(message: str, column: int, hint: str = "") -> InvalidInput:
    return InvalidInput(message, where=f"where, column {column}", hint=hint)


def _tokens(text: str) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            if text[at] in "\"'":
                raise _fault("a quoted text does not end", at + 1)
            raise _fault(f"{text[at]!r} is not understood here", at + 1, _HINTS.get(text[at], ""))
        kind = str(match.lastgroup)
        word = match.group(kind)
        found.append(_Token("operator" if kind == "word" and word in _WORDS else kind, word, match.start(kind) + 1))
        at = match.end()
    return [*found, _Token("end", "", end + 1)]


class _Parser:
    """Recursive descent over the tokens; ``used`` collects the fields."""

    def __init__(self, tokens: Sequence[_Token], names: Collection[str], closed: Mapping[str, Collection[str]]) -> None:
        self.tokens, self.names, self.closed, self.at, self.depth = tokens, names, closed, 0, 0
        self.used: set[str] = set()

    def finish(self) -> None:
        token = self.tokens[self.at]
        if token.kind != "end":
            raise _fault(f"{token.text!r} is not expected here", token.column, "join comparisons with and, or")

    def condition(self) -> Condition:
        parts = [self.conjunction()]
        while self.take("or"):
            parts.append(self.conjunction())
        return _joined(np.logical_or, parts)

    def conjunction(self) -> Condition:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return _joined(np.logical_and, parts)

    def negation(self) -> Condition:
        column = self.tokens[self.at].column
        negated, grouped = self.take("not"), False
        if not negated:
            grouped = self.take("(")
        if not (negated or grouped):
            return self.comparison()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _fault(f"nested deeper than {_DEEPEST} levels", column)
        inner = self.negation() if negated else self.condition()
        if grouped:
            self.need(")")
        self.depth -= 1
        return (lambda columns, cases: ~inner(columns, cases)) if negated else inner

    def comparison(self) -> Condition:
        left = self.operand()
        token = self.tokens[self.at]
        if token.text in ORDER and token.kind == "operator":
            self.at += 1
            right = self.operand()
            self.check_field(left, right)
            self.check_word(left, right)
            self.check_word(right, left)
            return _comparison(left, token.text, right)
        negated = token.text == "not" and token.kind == "operator" and self.tokens[self.at + 1].text == "in"
        if negated:
            self.at += 1
        if self.take("in"):
            choices = self.choices()
            self.check_field(left)
            for choice in choices:
                self.check_word(left, choice)
            found = _joined(np.logical_or, [_comparison(left, "==", choice) for choice in choices])
            return (lambda columns, cases: ~found(columns, cases)) if negated else found
        self.check_field(left)
        return _comparison(left, "==", _Operand(left.column, value=True))

    def choices(self) -> list[_Operand]:
        self.need("[")
        found = [self.operand()]
        while self.take(","):
            found.append(self.operand())
        self.need("]")
        return found

    def operand(self) -> _Operand:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "number":
            whole = re.fullmatch(r"-?\d+", token.text)
            return _Operand(token.column, value=int(token.text) if whole else float(token.text))
        if token.kind == "text":
            return _Operand(token.column, value=re.sub(r"\\(.)", r"\1", token.text[1:-1]))
        if token.kind == "word":
            if token.text in self.names:
                self.used.add(token.text)
                return _Operand(token.column, name=token.text)
            return _Operand(token.column, value=_LITERALS.get(token.text, token.text))
        shown = repr(token.text) if token.text else "the end"
        raise _fault(f"a field or a value is expected, not {shown}", token.column)

    def check_field(self, *operands: _Operand) -> None:
        """At least one side must be a field: a misspelt one would otherwise be a text that equals nothing."""
        if not any(operand.name for operand in operands):
            first = operands[0]
            raise _fault(unknown("field", str(first.value), sorted(self.names)), first.column)

    def check_word(self, operand: _Operand, other: _Operand) -> None:
        """A word that a closed field cannot have is a typing error, not an empty result."""
        words = self.closed.get(operand.name)
        if words is not None and not other.name and other.value not in words:
            raise _fault(unknown(operand.name, str(other.value), sorted(words)), other.column)

    def take(self, text: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "operator" and token.text == text:
            self.at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            token = self.tokens[self.at]
            raise _fault(f"{text!r} is expected, not {token.text or 'the end'!r}", token.column)


def _joined(join: Callable[[Mask, Mask], Mask], parts: Sequence[Condition]) -> Condition:
    return lambda columns, cases: reduce(join, (part(columns, cases) for part in parts))


def _comparison(left: _Operand, sign: str, right: _Operand) -> Condition:
    if left.name and right.name:
        judge = ORDER[sign]
        return lambda columns, cases: np.fromiter(
            map(judge, left.values(columns, cases), right.values(columns, cases)), dtype=bool, count=cases
        )
    if left.name:
        return lambda columns, cases: columns[left.name].compared(sign, right.value)
    return lambda columns, cases: columns[right.name].compared(_MIRRORED.get(sign, sign), left.value)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
