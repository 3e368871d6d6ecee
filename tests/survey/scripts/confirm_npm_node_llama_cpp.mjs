// Show the findings in llama.cpp. Run it with `npm install node-llama-cpp@3.22.1`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getLlama } from "node-llama-cpp";
import { check, gguf, SPELLED } from "./shared.mjs";

const llama = await getLlama({ build: "never", gpu: false, progressLogs: false, logLevel: "disabled" });
const spelled = (text) => Array.from(Buffer.from(text), (byte) => SPELLED[byte]);
/** The merges that make one token of a text, from the left. */
const merged = (text) => spelled(text).slice(1).map((last, index) => [spelled(text).slice(0, index + 1).join(""), last]);

async function encode(text, file) {
  const folder = mkdtempSync(join(tmpdir(), "vocabulary-"));
  writeFileSync(join(folder, "vocab.gguf"), gguf(file));
  const model = await llama.loadModel({ modelPath: join(folder, "vocab.gguf"), vocabOnly: true });
  const ids = model.tokenize(text, true);
  await model.dispose();
  rmSync(folder, { recursive: true });
  return ids;
}

const nfc = await encode("e\u0301", { pre: "qwen2", merges: merged("\u00e9") });
const mark = await encode("\u0928\u0947", { pre: "gpt-4o", merges: merged("\u0928\u0947") });
const marked = await encode("\u0928\u0947", { pre: "tekken", merges: merged("\u0928\u0947") });
const overlap = await encode("<a>bcd", { added: ["<a>", "a>bcd"] });
const newer = await encode("a\u1b7f\u1b7f", { pre: "llama-bpe", merges: merged("\u1b7f\u1b7f") });
console.log(nfc, mark, marked, overlap, newer);
process.exit();
