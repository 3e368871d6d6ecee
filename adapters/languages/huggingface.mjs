// The npm package @huggingface/tokenizers, the tokenizers of Transformers.js. The adapter writes each table as a
// tokenizer.json:
//
//     pytest conformance --adapter "cmd:node adapters/languages/huggingface.mjs"
//
// With the path of a tokenizer.json, it has only that model; `--adapter transformersjs:PATH` runs it so.
import { readFileSync } from "node:fs";

import { installed, modelFile, versionOf } from "./npm.mjs";
import { fromHex, serve, toHex } from "./protocol.mjs";

const NAME = "@huggingface/tokenizers";

// GPT-2's spelling of bytes: 68 of them, the invisible ones, as U+0100 and following.
const SPELLING = [];
for (let byte = 0, next = 0x100; byte < 256; byte++) {
  const plain = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  SPELLING.push(String.fromCharCode(plain ? byte : next++));
}
const spell = (token) => Array.from(fromHex(token), (byte) => SPELLING[byte]).join("");

const byteLevel = (use_regex) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex });

// A tokenizer.json uses the syntax of Oniguruma, in which {1,3}+ is not possessive but repeats the interval.
const oniguruma = (pattern) =>
  pattern.replace(/((?:\\[pP]\{\w+\}|\[(?:\\.|[^\]\\])*\]|\\?.)\{\d+(?:,\d*)?\})\+/g, "(?>$1)");

function preTokenizer(pattern) {
  if (pattern === undefined) return byteLevel(true);
  const split = { type: "Split", pattern: { Regex: oniguruma(pattern) }, behavior: "Isolated", invert: false };
  return { type: "Sequence", pretokenizers: [split, byteLevel(false)] };
}

class Tokenizer {
  constructor(json) {
    this.tokenizer = new (installed(NAME).Tokenizer)(json, { clean_up_tokenization_spaces: false });
  }

  encode(text) {
    return this.tokenizer.encode(text, { add_special_tokens: false }).ids;
  }

  decode(ids) {
    return this.tokenizer.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  }
}

class TableTokenizer extends Tokenizer {
  constructor({ vocab, merges, special_tokens, pattern }) {
    const learned = new Set(merges.map(([left, right]) => left + right));
    const special = new Set((special_tokens ?? []).filter((text) => text !== ""));
    const named = new Map([...special].map((text) => [toHex(text), text]));
    const spelled = Object.create(null);
    for (const [id, token] of vocab) {
      const isSpecial = named.has(token) && token.length > 2 && !learned.has(token);
      const spelling = isSpecial ? named.get(token) : spell(token);
      if (spelling in spelled) throw new Error(`a tokenizer.json holds one id for ${JSON.stringify(spelling)}, not two`);
      spelled[spelling] = id;
    }
    const tokens = new Map(vocab);
    const ids = new Map([...vocab].reverse().map(([id, token]) => [token, id]));
    let next = vocab.reduce((most, [id]) => Math.max(most, id), -1) + 1;
    const added_tokens = [...special].map((content) => {
      const id = ids.get(toHex(content)) ?? next++;
      tokens.set(id, toHex(content));
      return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
    });
    const model = { type: "BPE", vocab: spelled, merges: merges.map((pair) => pair.map(spell)) };
    const json = { model, added_tokens, normalizer: null, post_processor: null };
    super({ ...json, pre_tokenizer: preTokenizer(pattern), decoder: byteLevel(true) });
    this.shown = { vocab: [...tokens], merges };
  }

  table() {
    return this.shown;
  }
}

const read = (path) => new Tokenizer(JSON.parse(readFileSync(path, "utf8")));
const path = modelFile();

await serve(() => {
  const about = { name: NAME, version: versionOf(NAME), offers: ["encode", "decode"] };
  if (path !== null) {
    const tokenizer = read(path);
    return { ...about, model: path, load: () => tokenizer };
  }
  about.offers.push("pattern", "from_tokenizer_json");
  return { ...about, load: (given) => new TableTokenizer(given), from_tokenizer_json: (given) => read(given.path) };
});
