"""Pickles under another name: opening one could run code that it holds."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

from xcfg.errors import ArtifactError

_HINT = "save the values as JSONL, Parquet, npz or safetensors"
_OLD_OPENINGS = b"(c]}"
"""First bytes of the text protocols 0 and 1 for a list, a dict, a tuple and a class; no other format starts so."""


def refuse_pickle(path: Path) -> None:
    """Raise ArtifactError where ``path`` is a pickle, or an archive of ``torch.save``, whose data is a pickle.

    Protocols 2 to 5 open with the byte 0x80 and the protocol's number
    (https://docs.python.org/3/library/pickletools.html).
    """
    with path.open("rb") as stream:
        head = stream.read(4)
        end = stream.seek(0, 2)
        stream.seek(max(end - 1, 0))
        last = stream.read(1)
    binary = len(head) > 1 and head[0] == 0x80 and head[1] <= 5
    if binary or (head[:1] and head[:1] in _OLD_OPENINGS and last == b"."):
        raise ArtifactError("a pickle: opening one can run code that it holds", where=path.name, hint=_HINT)
    if head == b"PK\x03\x04" and _holds_pickle(path):
        hint = f"name a file of torch.save .pt, or {_HINT}"
        raise ArtifactError("an archive of torch.save, which holds a pickle", where=path.name, hint=hint)


def _holds_pickle(path: Path) -> bool:
    try:
        with ZipFile(path) as archive:
            return any(name.rpartition("/")[2] == "data.pkl" for name in archive.namelist())
    except BadZipFile:
        return False  # the reader of the format says what is wrong with the archive
