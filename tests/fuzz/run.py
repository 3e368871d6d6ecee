"""Fuzzes one parser with atheris, guided by coverage: `python tests/fuzz/run.py TARGET --seconds N` (extra `fuzz`).

Inputs on which it fails are written to the current directory under libFuzzer's names. Move one to
`seeds/TARGET/found-NAME` and every run of the tests tries it. `--try FILE` tries one input.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))
with atheris.instrument_imports(include=["bpe_conformance", "json", "pickletools", "yaml"]):
    from fuzz import targets

RSS_MEGABYTES = 3000
LONGEST = 16_384
"""The most bytes of an input."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=list(targets.TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="keeps what leads further, for the next run")
    parser.add_argument("--try", dest="tried", type=Path, metavar="FILE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bpe-fuzz-") as name:
        corpus, words, place = options.corpus or Path(name, "corpus"), Path(name, "words"), Path(name, "place")
        corpus.mkdir(parents=True, exist_ok=True)
        for seed in (targets.SEEDS / options.target).iterdir():
            shutil.copy(seed, corpus)
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in targets.DICTIONARY if len(word) < 60), "ascii")

        def one(data: bytes) -> None:
            place.mkdir()
            try:
                targets.check(options.target, data, place)
            finally:
                shutil.rmtree(place)

        if options.tried:
            one(options.tried.read_bytes())
            return
        flags = [f"-max_total_time={options.seconds}", f"-rss_limit_mb={RSS_MEGABYTES}", f"-max_len={LONGEST}"]
        flags += [f"-dict={words}", "-len_control=0", "-timeout=60", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
        atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
