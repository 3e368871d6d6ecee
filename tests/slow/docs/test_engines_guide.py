"""The programs of the guide for engines test a running server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from helpers.project import Project

from bpe_conformance.adapters import loading
from bpe_conformance.cli import main
from bpe_conformance.fixtures import read_model
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.formats import huggingface

pytestmark = pytest.mark.release

GUIDE = Path(__file__).parents[3] / "docs" / "engines.md"
MODEL = read_model(
    {"merges": [["a", "b"], ["ab", "c"]], "special_tokens": ["<|e|>"], "extra": [[258, "<|e|>"]]}, "small"
)


@pytest.fixture
def url() -> Iterator[str]:
    """A server with the two paths of llama-server."""
    tokenizer = Tokenizer(*MODEL.fresh())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/tokenize":
                answer = {"tokens": tokenizer.encode(asked["content"])}
            else:
                answer = {"content": tokenizer.decode(asked["tokens"])}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    huggingface.write(folder / "small.json", MODEL)
    assert main(["pack", str(folder / "small.json"), "-o", str(folder / "pack")]) == 0
    return folder / "pack"


@pytest.mark.parametrize(
    ("language", "file", "adapter"), [("python", "server.py", "server:Server"), ("js", "server.mjs", "")]
)
def test_a_running_server_is_tested(
    project: Project, url: str, golden: Path, language: str, file: str, adapter: str
) -> None:
    node = shutil.which("node")
    if not adapter and node is None:
        pytest.skip("needs node")
    (program,) = re.findall(f"```{language}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    project.write(file, program.replace("http://localhost:8080", url).replace("Qwen3-8B", "small"))
    shutil.copy(Path(loading.__file__).parent / "languages" / "protocol.mjs", project.path)
    options = ["--adapter", adapter or f"cmd:{node} server.mjs", "--bpe-pack", str(golden)]
    result = project.pytester.runpytest_subprocess("conformance", *options, timeout=120)
    assert "PASS: encoder" in result.stdout.str()
    assert "decoder (" in result.stdout.str()
