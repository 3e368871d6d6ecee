"""What a run leaves behind: one JSON document, and from it Markdown, a badge, and a page.

The JSON document is the source of all others (`report.schema.json`), and holds plain values only.
"""
