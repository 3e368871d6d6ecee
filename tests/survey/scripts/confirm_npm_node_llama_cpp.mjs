// Show the findings in llama.cpp. Run it with `npm install node-llama-cpp@3.22.1`.
import { getLlama } from "node-llama-cpp";
import { check, gguf, SPELLED } from "./shared.mjs";

const { mkdtempSync, rmSync, writeFileSync } = process.getBuiltinModule("node:fs");
const llama = await getLlama({ build: "never", gpu: false, progressLogs: false, logLevel: "disabled" });
const spelled = (text) => Array.from(Buffer.from(text), (byte) => SPELLED[byte]);
/** The merges that make one token, 256 + their number - 1, of a text of a few bytes. */
const merged = (text) => spelled(text).slice(1).map((last, index) => [spelled(text).slice(0, index + 1).join(""), last]);

async function loaded(file, use) {
  const folder = mkdtempSync("vocabulary-");
  writeFileSync(`${folder}/vocab.gguf`, gguf(file));
  const model = await llama.loadModel({ modelPath: `${folder}/vocab.gguf`, vocabOnly: true });
  const result = use(model);
  await model.dispose();
  rmSync(folder, { recursive: true });
  return result;
}
const encode = (text, file) => loaded(file, (model) => model.tokenize(text, true));
const decode = (ids, file) => loaded(file, (model) => model.detokenize(ids, true));

const normalized = await encode("e\u0301", { pre: "qwen2", merges: merged("\u00e9") });
const gpt4o = await encode("\u0928\u0947", { pre: "gpt-4o", merges: merged("\u0928\u0947") });
const capitals = await encode("\u00d3N", { pre: "gpt-4o", merges: merged("\u00d3N") });
const added = await encode("<a>bcd", { added: ["<a>", "a>bcd"] });
const foreign = await encode("a</s>", { merges: [["<", "/"]], extra: ["</s>"] });
const decoded = await decode([97, 32, 46], { pre: "llama-bpe" });

check("PIPELINE-NORM-1", () => normalized, [256]);
check("SPLIT-O200K-2", () => gpt4o, [260]);
check("SPLIT-O200K-1", () => capitals, [257]);
check("PIPELINE-ADDED-1", () => added, [256, 98, 99, 100]);
check("SPECIAL-OFF-1", () => foreign, [97, 256, 115, 62]);
check("DECODE-BYTES-1", () => decoded, "a .");
process.exit();
