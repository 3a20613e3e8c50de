"""An experiment file as a document, by the format its suffix names."""

from __future__ import annotations

from pathlib import Path

from xcfg.errors import InvalidInput
from xcfg.planner.document import Document
from xcfg.planner.json_text import parse_json
from xcfg.planner.toml_text import parse_toml
from xcfg.planner.yaml_text import parse_yaml

MAX_BYTES = 1 << 18
"""An experiment is written by hand; a larger file is something else, and slow to parse with positions."""

_PARSERS = {".yaml": parse_yaml, ".yml": parse_yaml, ".toml": parse_toml, ".json": parse_json}


def read_document(path: Path) -> Document:
    """Parse ``path``. Raises InvalidInput where it cannot be read, is not UTF-8, or its syntax is broken."""
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        accepted = ", ".join(sorted(_PARSERS))
        raise InvalidInput(f"an experiment file ends in one of {accepted}", where=str(path))
    document = parse(_text(path), str(path))
    if document.data is None and not document.problems:
        raise InvalidInput("the file is empty", where=str(path), hint="`xcfg init CHECKPOINT` writes one that runs")
    return document


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidInput(f"larger than {MAX_BYTES >> 10} KiB: not an experiment", where=str(path))
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InvalidInput("no such file", where=str(path), hint="`xcfg init CHECKPOINT` writes one") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text: {error.reason} at byte {error.start}", where=str(path)) from error
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(path)) from error
