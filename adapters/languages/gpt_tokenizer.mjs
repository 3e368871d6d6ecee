// The npm package gpt-tokenizer. Without a model, its core takes any table that ranks can represent:
//
//     pytest conformance --adapter "cmd:node adapters/languages/gpt_tokenizer.mjs"
//     pytest conformance --adapter "cmd:node adapters/languages/gpt_tokenizer.mjs gpt2"
import { ENCODINGS, GPT2, installed, modelNamed, ranksOf, spelled, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const model = modelNamed();

/** An object that is fed ids one by one, over a function from an async iterable of ids to one of texts. */
function fed(decode) {
  let give, isAsked, text = "";
  const ids = async function* () {
    for (let id; ; ) {
      const given = new Promise((resolve) => (give = resolve));
      isAsked?.();
      if ((id = await given) === undefined) return;
      yield id;
    }
  };
  const end = (async () => {
    for await (const delta of decode(ids())) text += delta;
  })();
  const feed = async (id) => {
    const asked = new Promise((resolve) => (isAsked = resolve));
    give(id);
    await Promise.race([asked, end]);
    const delta = text;
    text = "";
    return delta;
  };
  return { feed, close: () => feed() };
}

/** A fixed vocabulary, through the package's public functions. */
class Fixed {
  constructor(encoding) {
    this.encoding = encoding;
  }

  detokenizer() {
    return fed((ids) => this.encoding.decodeAsyncGenerator(ids));
  }

  encode(text) {
    return this.encoding.encode(text, { allowedSpecial: "all" });
  }

  decode(ids) {
    return this.encoding.decode(ids);
  }
}

/** Any table, through the class whose methods these functions are. */
class Core extends Fixed {
  constructor(encoding, special, table) {
    super(encoding);
    this.core = encoding.bytePairEncodingCoreProcessor;
    this.special = special;
    this.table = () => table;
  }

  encode(text) {
    return this.core.encodeNative(text, this.special);
  }
}

function load({ pattern, ...given }) {
  if (model !== null) return new Fixed(installed(`gpt-tokenizer/encoding/${ENCODINGS[model]}`));
  const { GptEncoding } = installed("gpt-tokenizer/GptEncoding");
  const { ordinary, special, table } = ranksOf(given);
  const decoder = [];
  for (const [token, id] of ordinary) decoder[id] = spelled(token);
  const encoding = new GptEncoding({
    bytePairRankDecoder: decoder,
    specialTokensEncoder: new Map(Object.entries(special)),
    tokenSplitRegex: new RegExp(pattern ?? GPT2, "gu"),
  });
  return new Core(encoding, new Set(Object.keys(special)), table);
}

await serve(() => ({
  name: "gpt-tokenizer",
  version: versionOf("gpt-tokenizer"),
  offers: ["encode", "decode", "decode_iterable", ...(model === null ? ["pattern"] : [])],
  conventions: model === null ? { lookup: "bytes" } : {},
  model,
  load,
}));
