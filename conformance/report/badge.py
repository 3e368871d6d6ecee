"""A badge in the JSON endpoint form that badge services read.

Source: shields.io, "Endpoint Badge": schemaVersion, label, message, color.
"""

from __future__ import annotations

import json

from .document import Document

LABEL = "byte-level BPE"


def text(document: Document) -> str:
    """Return the badge of one run: its classes that pass, then those that fail."""
    verdicts = document["verdicts"]
    passed = [verdict["class"] for verdict in verdicts if verdict["verdict"] == "pass"]
    failed = [verdict["class"] for verdict in verdicts if verdict["verdict"] != "pass"]
    parts = [f"{', '.join(names)} {verdict}" for verdict, names in (("fail", failed), ("pass", passed)) if names]
    run = document["run"]
    unfit = run["selected"] or run["part"] or not run["complete"] or run["missing"]
    if unfit:
        parts.append("in part")
    message = "; ".join(parts) or "nothing was tested"
    color = "lightgrey" if not verdicts else "red" if failed else "yellow" if unfit else "brightgreen"
    return json.dumps({"schemaVersion": 1, "label": LABEL, "message": message, "color": color}, indent=1) + "\n"
