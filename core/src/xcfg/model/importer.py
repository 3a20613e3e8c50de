"""Descriptors of what reads recorded logprobs: plain data, importing neither numpy nor a file format's library."""

from __future__ import annotations

from attrs import field, frozen

from xcfg.model.json import tupled


@frozen(kw_only=True)
class ImporterDescriptor:
    """What turns the rows of one framework's files into records.

    ``target`` is an import string ``module:Class`` of an :class:`xcfg.plugin.protocols.Importer`, made without
    arguments. ``sources`` are the pages that document the layout. ``note`` says which of the framework's files hold
    logprobs and which do not. ``both_sides`` is True where one file holds the logprobs of both sides.
    """

    id: str
    summary: str
    target: str
    both_sides: bool = False
    note: str = ""
    sources: tuple[str, ...] = field(default=(), converter=tupled)


@frozen(kw_only=True)
class FileFormatDescriptor:
    """How files of some suffixes are opened.

    ``target`` is an import string ``module:function`` of a :class:`xcfg.plugin.protocols.FileReader`. ``requires`` are
    import names beyond the distribution's own and ``install`` the pip line that brings them.
    """

    id: str
    summary: str
    suffixes: tuple[str, ...] = field(converter=tupled)
    target: str
    requires: tuple[str, ...] = field(default=(), converter=tupled)
    install: str = ""
