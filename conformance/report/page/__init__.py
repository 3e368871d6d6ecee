"""The report as one HTML page that needs no network and no server.

The tables are plain HTML from this package; the script adds the filter and the details.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..document import Document

FOLDER = Path(__file__).parent


def text(documents: Sequence[Document], findings: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the page of one or several runs; the same documents give the same bytes.

    Args:
        documents: the reports, in the order in which they are shown.
        findings: facts about implementations in addition to the results. Each has `adapter` (one name, or several,
            separated by commas), `verdict` (bug, limit, convention, advice or open), and any of `package`, `clause`,
            `input`, `expected`, `got`, `why` and `source`. Those of implementations without a report are left out.
    """
    import jinja2

    from . import data, markup, view

    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"prose": markup.prose, "breakable": markup.breakable, "further": data.further}
    script = _asset("page.js")
    page = view.page(documents, findings)
    made = environment.get_template("page.html.jinja").render(
        page=page,
        style=_asset("page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
        data=data.text(page),
    )
    return made + "\n"


def _asset(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
