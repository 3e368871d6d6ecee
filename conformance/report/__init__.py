"""The report of a run: a JSON document, and Markdown, a badge and a page made from it.

`report.schema.json` describes the document. The other forms read only the document.
"""
