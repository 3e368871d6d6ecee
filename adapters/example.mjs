// A small byte-level BPE tokenizer that speaks the protocol of PROTOCOL.md. No package is needed:
//
//     pytest conformance --adapter "cmd:node adapters/example.mjs"
//
// A token is kept as the hex of its bytes, as the protocol spells it: "6162" is "ab".
import { createInterface } from "node:readline";

// GPT-2's pattern. JavaScript's \s is another set (it holds U+FEFF and lacks U+0085), so the property is named.
const SPLIT =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

const toHex = (text) => Buffer.from(text, "utf8").toString("hex");
const atoms = (hex) => hex.match(/../g) ?? [];

class Tokenizer {
  constructor(vocab, merges, specialTokens) {
    this.tokens = new Map(vocab);
    this.merges = merges;
    this.ids = new Map();
    for (const [id, token] of vocab) if (!this.ids.has(token)) this.ids.set(token, id);
    let next = Math.max(...this.tokens.keys()) + 1; // spreading is fine up to some 100,000 ids
    this.special = [...new Set(specialTokens ?? [])].filter((token) => token !== "");
    for (const token of this.special.map(toHex)) {
      if (this.ids.has(token)) continue;
      this.ids.set(token, next);
      this.tokens.set(next++, token);
    }
    this.special.sort((a, b) => b.length - a.length); // at one place the longest wins
    this.ranks = new Map();
    merges.forEach(([left, right], rank) => {
      for (const token of [left, right, left + right]) this.idOf(token);
      const pair = `${left} ${right}`;
      if (!this.ranks.has(pair)) this.ranks.set(pair, rank);
    });
    for (let byte = 0; byte < 256; byte++) this.idOf(byte.toString(16).padStart(2, "0"));
  }

  idOf(token) {
    const id = this.ids.get(token);
    if (id === undefined) throw new Error(`the vocabulary has no token with the bytes ${token}`);
    return id;
  }

  encode(text) {
    const ids = [];
    let start = 0;
    for (let here = 0; here < text.length; ) {
      const found = this.special.find((token) => text.startsWith(token, here));
      if (found === undefined) {
        here++;
        continue;
      }
      ids.push(...this.encodeOrdinary(text.slice(start, here)), this.idOf(toHex(found)));
      start = here += found.length;
    }
    return ids.concat(this.encodeOrdinary(text.slice(start)));
  }

  encodeOrdinary(text) {
    return (text.match(SPLIT) ?? []).flatMap((piece) => this.merge(atoms(toHex(piece))).map((t) => this.idOf(t)));
  }

  merge(word) {
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < word.length; i++) {
        const rank = this.ranks.get(`${word[i]} ${word[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i]; // "<": the leftmost of equals
      }
      if (at < 0) return word;
      word.splice(at, 2, word[at] + word[at + 1]);
    }
  }

  decodeHex(ids) {
    const tokens = ids.map((id) => {
      if (!this.tokens.has(id)) throw new RangeError(`unknown id ${id}`);
      return this.tokens.get(id);
    });
    return tokens.join("");
  }

  decode(ids) {
    // Bytes first, then UTF-8. TextDecoder would strip a leading U+FEFF.
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.from(this.decodeHex(ids), "hex"));
  }
}

const models = new Map();

const operations = {
  start: () => ({
    protocol: 1,
    name: "example.mjs",
    version: "1.0",
    language: `JavaScript (Node ${process.versions.node})`,
    capabilities: ["encode", "decode", "encode_batch", "decode_bytes"],
    conventions: {},
    model: null,
  }),
  load: ({ vocab, merges, special_tokens }) => {
    const model = models.size ? Math.max(...models.keys()) + 1 : 1;
    models.set(model, new Tokenizer(vocab, merges, special_tokens));
    return { model };
  },
  unload: ({ model }) => void models.delete(model),
  table: ({ model }) => ({ vocab: [...models.get(model).tokens], merges: models.get(model).merges }),
  encode: ({ model, text }) => models.get(model).encode(text),
  encode_batch: ({ model, texts }) => texts.map((text) => models.get(model).encode(text)),
  decode: ({ model, ids }) => models.get(model).decode(ids),
  decode_bytes: ({ model, ids }) => models.get(model).decodeHex(ids),
};

const escape = (json) => json.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const operation = operations[request.op];
  const reply = { seq: request.seq };
  try {
    if (operation === undefined) reply.not_claimed = `${request.op} is not offered`;
    else reply.result = operation(request) ?? null;
  } catch (error) {
    reply.error = { type: error.name, message: error.message, traceback: error.stack };
  }
  process.stdout.write(escape(JSON.stringify(reply)) + "\n");
}
