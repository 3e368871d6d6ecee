// The npm package js-tiktoken. Without a model, it takes any table that ranks can represent:
//
//     pytest conformance --adapter "cmd:node adapters/languages/js_tiktoken.mjs"
//     pytest conformance --adapter "cmd:node adapters/languages/js_tiktoken.mjs gpt2"
import { ENCODINGS, GPT2, installed, modelNamed, ranksOf, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const model = modelNamed();

class Tokenizer {
  constructor(encoding, table) {
    this.encoding = encoding;
    if (table !== undefined) this.table = () => table;
  }

  encode(text) {
    return this.encoding.encode(text, "all");
  }

  decode(ids) {
    return this.encoding.decode(ids);
  }
}

function load({ pattern, ...given }) {
  const { Tiktoken } = installed("js-tiktoken/lite");
  if (model !== null) return new Tokenizer(new Tiktoken(installed(`js-tiktoken/ranks/${ENCODINGS[model]}`)));
  const { ordinary, special, table } = ranksOf(given);
  const lines = ordinary.map(([token, id]) => `! ${id} ${Buffer.from(token, "hex").toString("base64")}`);
  const ranks = { pat_str: pattern ?? GPT2, special_tokens: special, bpe_ranks: lines.join("\n") };
  return new Tokenizer(new Tiktoken(ranks), table);
}

await serve(() => ({
  name: "js-tiktoken",
  version: versionOf("js-tiktoken"),
  offers: ["encode", "decode", ...(model === null ? ["pattern"] : [])],
  conventions: model === null ? { lookup: "bytes" } : {},
  model,
  load,
}));
