"""Settings of Sphinx. `python -m sphinx -W docs site` builds the manual."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import generate

project = "bpe-conformance"
author = "the bpe-conformance contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["generated/README.md"]
html_theme = "furo"
html_title = "bpe-conformance"
html_copy_source = False
smartquotes = False  # quotation marks in prose are often code
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]

generate.write_pages()


def setup(app: object) -> None:
    """Rewrite links to files of the repository before a page is read."""
    app.connect("source-read", generate.rewrite_links)  # type: ignore[attr-defined]
