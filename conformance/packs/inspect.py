"""`bpe-conformance inspect`: what a model is, and what is odd about it, on one screen; or its steps on one text."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import chain
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.expression import pattern_name
from bpe_conformance.fixtures.one_line import ascii_only, counted
from bpe_conformance.fixtures.pipeline import FLAGS, AddedToken, Step
from bpe_conformance.reference.formats import gguf

from ..command_line import CommandError, command_errors, print_lines
from ..terminal import show
from .cases import PIECES, Draw, all_real_text, alternatives_met, covering
from .files import NAMED, ModelSource, add_options, model_size, overrides, read_model_files
from .reach import Reach, measure, text_of

WIDTH = 100
LABEL = 12
TRIED = 2000  # how many texts are tried for an alternative of a split
LONGEST = 200  # characters of an expression that are shown
MOST_TOKENS = 4  # how many added tokens are shown


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="+", metavar="MODEL", help=NAMED)
    parser.add_argument("--text", metavar="TEXT", help="show what each step makes of this text instead")
    tests = "compare with the tests of llama.cpp instead: FILE.inp and FILE.out, as beside its ggml-vocab-NAME.gguf"
    parser.add_argument("--llamacpp", dest="tests", type=Path, metavar="FILE", help=tests)
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    source = read_model_files(options.table, overrides(options))
    reach = Reach(source.model)
    if options.tests is not None:
        return _compared(reach, options.tests)
    odd = (("odd", text) for text in _odd(reach))
    lines = chain(_description(source, reach), odd) if options.text is None else _steps(reach, options.text)
    for name, text in lines:
        wrapped = textwrap.wrap(ascii_only(text), WIDTH - LABEL, break_on_hyphens=False) or [""]
        print_lines(f"{'' if number else name:<{LABEL}}{line}" for number, line in enumerate(wrapped))
    return 0


def _compared(reach: Reach, path: Path) -> int:
    """Compare with the tests of llama.cpp; the status is 1 if one has other ids."""
    with command_errors(ValueError):
        tests = gguf.read_tests(path)
    others = [(text, ids) for text, ids in tests if reach.ids(text) != ids]
    for text, ids in others[:MOST_TOKENS]:
        print_lines([show.text_line(text), f"  this model  {reach.ids(text)}", f"  the file    {ids}"])
    print_lines([f"{len(tests) - len(others):,} of {len(tests):,} texts of {path}.inp have the ids of {path}.out"])
    return 1 if others else 0


# What it is


def _description(source: ModelSource, reach: Reach) -> Iterator[tuple[str, str]]:
    model, pipeline = source.model, source.model.pipeline
    yield "model", f"{model.name} ({', '.join(source.sources)}): {model_size(model)}"
    if pipeline is None:
        yield "splits", f"by {_short(model.expression)}"
    else:
        yield "normalizer", ", then ".join(pipeline.normalizer) or "none"
        for number, step in enumerate(pipeline.steps, 1):
            yield f"step {number}", _step(step)
    whole = "whole: a pre-token that is an entry is one token (ignore_merges)"
    yield "lookup", whole if reach.oracle.lookup == "whole" else "pair: by merges"
    tokens = pipeline.added_tokens if pipeline is not None else tuple(map(AddedToken, model.special_tokens or ()))
    groups: dict[str, list[AddedToken]] = {}
    none = f"none of {', '.join(FLAGS)}"
    for token in tokens:
        groups.setdefault(", ".join(flag for flag in FLAGS if getattr(token, flag)) or none, []).append(token)
    for flags, some in groups.items():
        shown = [f"{token.content!a} {model.special_ids[token.content]}" for token in some[:MOST_TOKENS]]
        shown += [f"{len(some) - MOST_TOKENS:,} more"] * (len(some) > MOST_TOKENS)
        yield "added", f"{counted(len(some), 'token')} with {flags}: {', '.join(shown)}"
    digest, names = gguf.recognised(model, reach.ids)
    found = [f"{name} ({'no BOS' if first is None else f'BOS {first}'})" for name, first in names.items()]
    unknown = f"does not know its ids: their hash is {digest} without BOS"
    known = f"takes its ids for those of {', '.join(found)}"
    yield "llama.cpp", f"convert_hf_to_gguf.py {known if found else unknown}"


def _step(step: Step) -> str:
    settings = {part.name: getattr(step, part.name) for part in fields(step)}
    expression = settings.pop("expression", None)
    shown = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{type(step).__name__} ({shown})" + (f": {_short(expression)}" if expression is not None else "")


def _short(expression: str) -> str:
    name = pattern_name(expression)
    expression = expression.translate({ord("\n"): r"\n", ord("\r"): r"\r", ord("\t"): r"\t"})
    if name in PATTERNS:
        return f"the pattern {name}"
    return expression if len(expression) <= LONGEST else f"{expression[: LONGEST - 4]} ..."


# What is odd


def _odd(reach: Reach) -> Iterator[str]:
    model = reach.model
    texts = {index: text_of(token) for index, token in sorted(model.vocab.items()) if token not in reach.special_tokens}
    ids = {index: reach.ids(text) for index, text in texts.items() if text}
    others = [index for index, found in ids.items() if found != [index]]
    changed = [index for index in others if reach.oracle.normalize(texts[index]) != texts[index]]
    cut = [index for index in others if index not in changed and len(reach.pre_tokens(texts[index])) > 1]
    yield from _about(changed, texts, "whose text is not one token, because normalization changes it")
    yield from _about(cut, texts, "whose text is not one token, because a step cuts it")
    whole = [index for index in ids if ids[index] == [index] and len(reach.steps(model.vocab[index])[0]) > 1]
    yield from _about(whole, texts, "whose text is one token only by the lookup whole")
    alone = {model.vocab[index] for index in ids.keys() - others}
    coverage = measure(reach, covering(reach, Draw("inspect"), alone), alone)
    id_of = {show.token(token): index for index, token in model.vocab.items()}
    for reason, found in coverage["not_reached"].items():
        some = (f"{one} (id {id_of[one]})" if one in id_of else one for one in found["examples"][:3])
        yield f"{counted(found['count'], 'token')} {reason}, such as {', '.join(some)}"
    if idle := [rank for rank, pair in enumerate(model.merges) if not reach.can_merge(pair)]:
        pair = model.merges[idle[0]]
        made = " | ".join(map(show.token, reach.steps(pair[0] + pair[1])[0]))
        how = f"the bytes of rank {idle[0]}, {show.joined(pair)}, become {made} by other merges"
        yield f"{counted(len(idle), 'merge')} that cannot apply: {how}{_see(text_of(pair[0] + pair[1]))}"
    yield from _alternatives(reach)
    yield from _added(reach)
    yield from _ids(model)


def _about(indexes: list[int], texts: Mapping[int, str], what: str) -> Iterator[str]:
    if indexes:
        shortest = min(indexes, key=lambda index: (len(texts[index]), index))
        yield f"{counted(len(indexes), 'entry')} {what}, such as id {shortest}{_see(texts[shortest])}"


def _see(text: str) -> str:
    """Return the option that shows a text, as bash and zsh read it."""
    if not text:
        return ""
    plain = text.isascii() and text.isprintable() and not {"'", "\\"} & {*text}
    return f"; see --text '{text}'" if plain else f"; see --text $'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if character < "\U00010000" else f"\\U{ord(character):08x}"


def _alternatives(reach: Reach) -> Iterator[str]:
    draw = Draw("inspect")
    pieces = list(PIECES.values())
    texts = [all_real_text(), *(draw.pieces(pieces[number % len(pieces)], 6) for number in range(TRIED))]
    for part in alternatives_met(reach, texts)["not_met"]:
        yield f"the alternative {_short(part)} matches in none of {len(texts):,} texts that were tried"


def _added(reach: Reach) -> Iterator[str]:
    """Yield the added tokens that are not found in their own text, or inside another one."""
    tokens = reach.special
    whole = [token for token in tokens if reach.segments(token) == [(token, True)]]
    for token in tokens:
        if token not in whole:
            found = " | ".join(ascii(segment) for segment, _ in reach.segments(token))
            yield f"the added token {token!a} is not found in its own text, which becomes {found}{_see(token)}"
    if inside := [(inner, outer) for outer in whole for inner in tokens if inner != outer and inner in outer]:
        inner, outer = inside[0]
        both = f"{inner!a} is not found inside {outer!a}{_see(outer)}"
        yield f"{counted(len(inside), 'pair')} of added tokens, one inside the other: {both}"


def _ids(model: Model) -> Iterator[str]:
    added = model.pipeline.added_tokens if model.pipeline is not None else ()
    for token in added:
        if token.id is not None and model.vocab[token.id] != token.content.encode("utf-8"):
            of = f"{show.token(model.vocab[token.id])}, because its text is the key of that entry"
            yield f"the added token {token.content!a} has the id {token.id} of {of}"
    counts = Counter(model.vocab.values())
    if twice := [token for token, count in counts.items() if count > 1]:
        ids = [index for index, token in model.vocab.items() if token == twice[0]]
        same = f"{show.token(twice[0])} has the ids {', '.join(map(str, ids))}"
        yield f"{counted(len(twice), 'token')} with several ids: {same}"
    if missing := [byte for byte in range(256) if bytes([byte]) not in counts]:
        yield f"{counted(len(missing), 'byte')} without an entry, such as {show.hex_line(bytes(missing[:3]))}"
    if gaps := sorted({*range(max(model.vocab) + 1)} - model.vocab.keys()):
        yield f"{counted(len(gaps), 'id')} below {max(model.vocab):,} without an entry, such as {gaps[0]}"


# The steps on one text


def _steps(reach: Reach, text: str) -> Iterator[tuple[str, str]]:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CommandError("--text is not UTF-8") from None
    yield "text", ascii(text)
    for segment, special in reach.segments(text):
        if special:
            yield "added", f"{segment!a} {reach.oracle.special_id(segment)}"
            continue
        yield "segment", ascii(segment)
        for piece in reach.oracle.split(segment):
            data = b"".join(reach.oracle.atoms(piece))
            tokens = " | ".join(f"{show.token(token)} {reach.oracle.ids[token]}" for token in reach.oracle.word(piece))
            yield "pre-token", f"{show.token(data)}: {tokens}"
    yield "ids", " ".join(map(str, reach.ids(text)))
