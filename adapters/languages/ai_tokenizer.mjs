// The npm package ai-tokenizer. Without a model it takes any table that ranks can represent. It ships cl100k and o200k:
//
//     pytest conformance --adapter "cmd:node adapters/languages/ai_tokenizer.mjs"
import { ENCODINGS, GPT2, installed, modelNamed, ranksOf, spelled, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const model = modelNamed();

class Tokenizer {
  constructor(data, table) {
    const { Tokenizer: Inner } = installed("ai-tokenizer");
    this.inner = new Inner(data);
    this.allowed = Object.keys(data.special_tokens); // with "all" the package finds none of them
    if (table !== undefined) this.table = () => table;
  }

  encode(text) {
    return this.inner.encode(text, this.allowed);
  }

  decode(ids) {
    return this.inner.decode(ids);
  }
}

function load({ pattern, ...given }) {
  if (model !== null) return new Tokenizer(installed(`ai-tokenizer/encoding/${ENCODINGS[model]}`));
  const { ordinary, special, table } = ranksOf(given);
  const data = { name: "table", pat_str: pattern ?? GPT2, special_tokens: special };
  Object.assign(data, { stringEncoder: {}, binaryEncoder: [], decoder: {} }); // the forms that the package ships
  for (const [token, id] of ordinary) {
    const value = spelled(token);
    data.decoder[id] = typeof value === "string" ? value : Uint8Array.from(value);
    if (typeof value === "string") data.stringEncoder[value] = id;
    else data.binaryEncoder.push([data.decoder[id], id]);
  }
  data.binaryEncoder.sort(([a], [b]) => Buffer.compare(a, b)); // it is searched by bisection
  return new Tokenizer(data, table);
}

await serve(() => ({
  name: "ai-tokenizer",
  version: versionOf("ai-tokenizer"),
  offers: ["encode", "decode", ...(model === null ? ["pattern"] : [])],
  conventions: model === null ? { lookup: "bytes" } : {},
  model,
  load,
}));
