"""The page itself: one file with its data, its style and the charting library inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec

from xcfg.errors import EnvironmentFault
from xcfg.model.codec import unstructure
from xcfg.model.json import Json
from xcfg.report.wording import FAKE_NOTE, STYLES, limit_note, number, verdict_line

SCRIPTS = ("echarts.min.js", "data.js", "charts.js", "page.js")


def check_html() -> None:
    """Raise EnvironmentFault where the page could not be made."""
    if find_spec("jinja2") is None:
        raise EnvironmentFault("jinja2 is not installed", where="--html", hint='python -m pip install "xcfg[report]"')


def html_page(content: Mapping[str, Json], page: Mapping[str, Json]) -> bytes:
    """The ``report`` document and what :func:`xcfg.report.html.content.page_content` made of it, as one HTML file.

    Text from files is escaped where it stands in the page, and nothing in the data can end its script.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    assets = files(__package__) / "assets"

    def read(name: str) -> str:
        return (assets / name).read_text(encoding="utf-8")

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    data = json.dumps(unstructure(page), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return (
        environment.from_string(read("page.html"))
        .render(
            content=content,
            page=page,
            verdict=verdict_line(content),
            notes=[note for note in (FAKE_NOTE if content["fake"] else "", limit_note(content)) if note],
            kinds=STYLES,
            style=Markup(read("style.css")),
            scripts=[Markup(read(name)) for name in SCRIPTS],
            data=Markup(data.replace("<", "\\u003c")),
        )
        .encode()
    )
