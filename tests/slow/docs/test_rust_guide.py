"""The program and the test in docs/rust.md work with Debian's serde_json."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.console_blocks import BLOCKS

from bpe_conformance.cli import main

REGISTRY = Path("/usr/share/cargo/registry")
LIBRARY = """\
use std::collections::HashMap;

pub struct Tokenizer {
    ids: HashMap<Vec<u8>, u32>,
    ranks: HashMap<(Vec<u8>, Vec<u8>), usize>,
}

impl Tokenizer {
    pub fn new(vocab: Vec<(u32, Vec<u8>)>, merges: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Tokenizer {
            ids: vocab.into_iter().map(|(id, token)| (token, id)).collect(),
            ranks: merges.into_iter().enumerate().map(|(rank, pair)| (pair, rank)).collect(),
        }
    }

    /// Merges the whole text, without a split.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut word: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
        while let Some((_, i)) = (1..word.len())
            .filter_map(|i| Some((*self.ranks.get(&(word[i - 1].clone(), word[i].clone()))?, i)))
            .min()
        {
            let right = word.remove(i);
            word[i - 1].extend(right);
        }
        word.iter().map(|token| self.ids[token]).collect()
    }
}
"""

pytestmark = pytest.mark.skipif(
    shutil.which("cargo") is None or not list(REGISTRY.glob("serde_json-*")),
    reason="needs cargo and Debian's librust-serde-json-dev",
)


@pytest.fixture(scope="module")
def crate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tok")
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "tok"\nversion = "1.0.0"\nedition = "2021"\n'
        '[dependencies]\nserde_json = "1"\n[profile.dev]\ndebug = false\n',
        "utf-8",
    )
    (folder / ".cargo").mkdir()
    (folder / ".cargo" / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{REGISTRY}"\n', "utf-8"
    )
    for _, body in BLOCKS["docs/rust.md"]:
        if body.startswith("// "):
            name = body.splitlines()[0].removeprefix("// ")
            (folder / name).parent.mkdir(exist_ok=True)
            # the models of SPLIT are small, so its cases do not need an optimized build
            (folder / name).write_text(body.replace('"MERGE"', '"SPLIT"'), "utf-8")
    (folder / "src" / "lib.rs").write_text(LIBRARY, "utf-8")
    return folder


def test_the_program_speaks_the_protocol_and_the_test_shows_failures(crate: Path) -> None:
    assert main(["export", str(crate / "spec")]) == 0
    done = subprocess.run(["cargo", "test", "--offline"], cwd=crate, capture_output=True, text=True, check=False)
    shown = done.stdout + done.stderr
    assert re.search(r"\n[1-9]\d* passed\n", shown), shown
    assert "split-letter-" in shown  # the tokenizer of this test does not split
    assert main(["check-bridge", f"cmd:{crate / 'target' / 'debug' / 'tok'}"]) == 0
