"""What another distribution's code raised, in one sentence.

Its code may raise anything, ``SystemExit`` and other exceptions outside :class:`Exception` included, so whatever calls
it catches ``BaseException``; ``KeyboardInterrupt`` alone goes on, for it is the user's.
"""

from __future__ import annotations

from collections.abc import Callable

_LONGEST = 500
"""Characters kept of a text that is not ours: a value's representation may fill a screen."""


class BrokenPlugin(Exception):
    """A plugin broke a rule of the host; the message is a sentence."""


def said(error: BaseException) -> str:
    """The error in one sentence; the type's name where the text alone would not tell what happened."""
    text = _text(lambda: str(error))
    if isinstance(error, BrokenPlugin):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object) -> str:
    """The value as Python shows it, with its type: ``int 7``."""
    return f"{type(value).__name__} {_text(lambda: repr(value))}".rstrip()


def _text(convert: Callable[[], str]) -> str:
    """What ``convert`` gives, which is the other distribution's code too."""
    try:
        text = convert()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"(its text cannot be had: {type(error).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
