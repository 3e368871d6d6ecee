"""Paragraphs of English prose out of the files of packages: HTML, Markdown, dictionaries, bibles, wiki dumps."""

from __future__ import annotations

import bz2
import gzip
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path
from typing import TypeAlias

Document: TypeAlias = list[str]
"""Paragraphs, each without line breaks."""

SHORTEST = 60
"""Characters of a paragraph; what is shorter is a heading, a menu or a caption."""
ENTRIES = 50
"""Paragraphs of a document where the source has no documents of its own."""

_BLOCKS = ("p", "para", "simpara", "div", "li", "dd", "blockquote", "td")
_NO_PROSE = ("script", "style", "pre", "nav", "header", "footer")
_UNUSUAL = re.compile(r"[^A-Za-z .,;:'\"!?()’‘“”—-]")
_NO_LETTER = re.compile(r"[^A-Za-z ]")
_DICTIONARY_NOISE = re.compile(r"\[(?:syn:[^]]*|ant:[^]]*|[^]]*Webster[^]]*|PJC|WordNet[^]]*)\]|[{}]")
_WIKI_NOISE = re.compile(
    r"\{\{[^{}]*\}\}|\{\|.*?\|\}|<ref[^>]*/>|<ref.*?</ref>|<[^>]*>|'{2,}|={2,}[^=\n]*={2,}", re.DOTALL
)
_POD_CODE = re.compile(r"[A-Z]<+([^<>]*)>+")
_PARAGRAPH_TAG = re.compile(r"<(?:p|br|lb)\b[^>]*>|\n\n|\0", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_WIKI_LINK = re.compile(r"\[\[(?:[^][|]*\|)?([^][|]*)\]\]")


def is_prose(paragraph: str) -> bool:
    """Return whether `paragraph` reads as sentences: long enough, in words, with few signs and digits.

    >>> is_prose("It was the best of times, it was the worst of times, it was the age of wisdom.")
    True
    >>> is_prose("std::vector<int>::push_back(const int &value) noexcept(false); // since C++11")
    False
    """
    size = len(paragraph)
    return (
        size >= SHORTEST
        and 4 * size <= 40 * paragraph.count(" ")
        and len(_UNUSUAL.findall(paragraph)) <= 0.05 * size
        and len(_NO_LETTER.findall(paragraph)) <= 0.12 * size
    )


def is_text(paragraph: str) -> bool:
    """Return whether `paragraph` reads as words at least: headings, short sentences, lists.

    >>> is_text("Note: see the section above.")
    True
    """
    size = len(paragraph)
    return 4 * size <= 48 * paragraph.count(" ") and len(_NO_LETTER.findall(paragraph)) <= 0.25 * size


def html_page(data: bytes) -> Document:
    """Return the text of each innermost block of a page, in order."""
    from lxml import etree, html

    try:
        root = html.document_fromstring(data)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return []
    etree.strip_elements(root, *_NO_PROSE, etree.Comment, with_tail=False)
    innermost = (block for block in root.iter(*_BLOCKS) if next(block.iterdescendants(*_BLOCKS), None) is None)
    return [_joined(block.text_content()) for block in innermost]


def read_html(file: Path) -> list[Document]:
    """Read a page, gzipped or not."""
    data = file.read_bytes()
    return [html_page(gzip.decompress(data) if file.suffix == ".gz" else data)]


def read_pod(file: Path) -> list[Document]:
    """Read a manual of Perl: its paragraphs at the margin, formatting codes dropped."""
    text = file.read_text(encoding="utf-8", errors="replace")
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if not part[:1].isspace() and part[:1] != "="]
    return [[_joined(_POD_CODE.sub(r"\1", part)) for part in paragraphs]]


def read_play(file: Path) -> list[Document]:
    """Read a play in Markdown: a paragraph for each scene, since speeches are short."""
    text = re.sub(r"[*_]+", "", file.read_text(encoding="utf-8"))
    return [[_joined(scene) for scene in re.split(r"^#+ ", text, flags=re.MULTILINE)]]


def read_bible(file: Path) -> list[Document]:
    """Read a bible of `pythonbible`: the longest string of the module, a paragraph on each line."""
    longest = max(file.read_text(encoding="utf-8").split('"""'), key=len)
    return list(_grouped(longest.splitlines()))


def read_commentary(file: Path) -> list[Document]:
    """Read a compressed commentary of SWORD: an index (`*.?zs`) of blocks, which lie in the file `*.?zz` beside it."""
    packed = file.with_suffix(file.suffix[:-1] + "z").read_bytes()
    blocks = [packed[start : start + size] for start, size, _ in struct.iter_unpack("<III", file.read_bytes())]
    texts = [zlib.decompress(block).decode("utf-8", errors="replace") for block in blocks if block]
    return [[_joined(unescape(_TAG.sub(" ", part))) for part in _PARAGRAPH_TAG.split(text)] for text in texts]


def read_dictionary(file: Path) -> list[Document]:
    """Read a database of dictd: an entry starts at the margin."""
    text = gzip.decompress(file.read_bytes()).decode("utf-8", errors="replace")
    entries = re.split(r"\n(?=\S)", _DICTIONARY_NOISE.sub("", text))
    return list(_grouped(map(_joined, entries)))


def read_wiki(file: Path) -> list[Document]:
    """Read a dump of Wikipedia, in XML, bzip2: a document for each page."""
    dump = bz2.decompress(file.read_bytes()).decode("utf-8")
    pages = re.findall(r"<text[^>]*>(.*?)</text>", dump, flags=re.DOTALL)
    return [_wiki_page(page) for page in pages]


def _wiki_page(page: str) -> Document:
    text, before = unescape(page), ""
    while text != before:
        text, before = _WIKI_NOISE.sub("", text), text
    return [_joined(line) for line in _WIKI_LINK.sub(r"\1", text).splitlines()]


def _grouped(paragraphs: Iterable[str]) -> Iterator[Document]:
    document: Document = []
    for paragraph in paragraphs:
        document.append(paragraph)
        if len(document) == ENTRIES:
            yield document
            document = []
    if document:
        yield document


def _joined(text: str) -> str:
    return " ".join(text.split())
