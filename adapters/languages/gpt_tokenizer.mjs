// The npm package gpt-tokenizer. Without a model, its core takes any table that ranks can represent:
//
//     pytest conformance --adapter "cmd:node adapters/languages/gpt_tokenizer.mjs"
//     pytest conformance --adapter "cmd:node adapters/languages/gpt_tokenizer.mjs gpt2"
import { ENCODINGS, GPT2, installed, modelNamed, ranksOf, spelled, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const model = modelNamed();

/** A fixed vocabulary, through the package's public functions. */
class Fixed {
  constructor(encoding) {
    this.encoding = encoding;
  }

  encode(text) {
    return this.encoding.encode(text, { allowedSpecial: "all" });
  }

  decode(ids) {
    return this.encoding.decode(ids);
  }
}

/** Any table, through the class that these functions use. */
class Core {
  constructor(core, special, table) {
    this.core = core;
    this.special = special;
    this.table = () => table;
  }

  encode(text) {
    return this.core.encodeNative(text, this.special);
  }

  decode(ids) {
    return this.core.decodeNative(ids);
  }
}

function load({ pattern, ...given }) {
  if (model !== null) return new Fixed(installed(`gpt-tokenizer/encoding/${ENCODINGS[model]}`));
  const { BytePairEncodingCore } = installed("gpt-tokenizer/BytePairEncodingCore");
  const { ordinary, special, table } = ranksOf(given);
  const decoder = [];
  for (const [token, id] of ordinary) decoder[id] = spelled(token);
  const core = new BytePairEncodingCore({
    bytePairRankDecoder: decoder,
    specialTokensEncoder: new Map(Object.entries(special)),
    tokenSplitRegex: new RegExp(pattern ?? GPT2, "gu"),
  });
  return new Core(core, new Set(Object.keys(special)), table);
}

await serve(() => ({
  name: "gpt-tokenizer",
  version: versionOf("gpt-tokenizer"),
  offers: ["encode", "decode", ...(model === null ? ["pattern"] : [])],
  conventions: model === null ? { lookup: "bytes" } : {},
  model,
  load,
}));
