// The npm package tiktoken: OpenAI's engine as WebAssembly. Without a model, it takes any table that ranks can
// represent:
//
//     pytest conformance --adapter "cmd:node adapters/languages/tiktoken_wasm.mjs"
//     pytest conformance --adapter "cmd:node adapters/languages/tiktoken_wasm.mjs gpt2"
import { ENCODINGS, GPT2, installed, modelNamed, ranksOf, versionOf } from "./npm.mjs";
import { serve, utf8 } from "./protocol.mjs";

const model = modelNamed();

class Tokenizer {
  constructor(encoding, table) {
    this.encoding = encoding;
    if (table !== undefined) this.table = () => table;
  }

  encode(text) {
    return this.encoding.encode(text, "all");
  }

  decode_bytes(ids) {
    // A Uint32Array would silently turn -1 into 4294967295, so the adapter checks the values, as a typed caller would.
    if (ids.some((id) => id < 0)) throw new RangeError("a negative id");
    return this.encoding.decode(Uint32Array.from(ids));
  }

  decode(ids) {
    return utf8(this.decode_bytes(ids)); // the package gives bytes and leaves the text to the caller
  }

  free() {
    this.encoding.free();
  }
}

function load({ pattern, ...given }) {
  const { Tiktoken, get_encoding } = installed("tiktoken");
  if (model !== null) return new Tokenizer(get_encoding(ENCODINGS[model]));
  const { ordinary, special, table } = ranksOf(given);
  const lines = ordinary.map(([token, id]) => `${Buffer.from(token, "hex").toString("base64")} ${id}`);
  return new Tokenizer(new Tiktoken(lines.join("\n"), special, pattern ?? GPT2), table);
}

await serve(() => ({
  name: "tiktoken (npm)",
  version: versionOf("tiktoken"),
  offers: ["encode", "decode", "decode_bytes", ...(model === null ? ["pattern"] : [])],
  conventions: model === null ? { lookup: "bytes" } : {},
  model,
  load,
}));
