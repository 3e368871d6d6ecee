// A small byte-level BPE tokenizer that uses protocol.mjs. It needs no package:
//
//     pytest conformance --adapter "cmd:node adapters/languages/example.mjs"
//
// A token is a string with the hex of its bytes, as in the protocol: "6162" is "ab".
import { fromHex, serve, toHex, utf8 } from "./protocol.mjs";

// GPT-2's pattern. JavaScript's \s is a different set (with U+FEFF, without U+0085), so the pattern names the property.
const SPLIT =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

const atoms = (hex) => hex.match(/../g) ?? [];

class Tokenizer {
  constructor(vocab, merges, specialTokens) {
    this.tokens = new Map(vocab);
    this.merges = merges;
    this.ids = new Map();
    for (const [id, token] of vocab) if (!this.ids.has(token)) this.ids.set(token, id);
    let next = vocab.reduce((most, [id]) => Math.max(most, id), -1) + 1;
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
      ids.push(this.encodeOrdinary(text.slice(start, here)), this.idOf(toHex(found)));
      start = here += found.length;
    }
    ids.push(this.encodeOrdinary(text.slice(start)));
    return ids.flat(); // push(...ids) would fail beyond some 100,000 of them
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

  encode_batch(texts) {
    return texts.map((text) => this.encode(text));
  }

  decode_bytes(ids) {
    const tokens = ids.map((id) => {
      if (!this.tokens.has(id)) throw new RangeError(`unknown id ${id}`);
      return this.tokens.get(id);
    });
    return fromHex(tokens.join("")); // bytes first, then UTF-8
  }

  decode(ids) {
    return utf8(this.decode_bytes(ids));
  }

  /** Text as ids arrive. The decoder keeps the bytes of an incomplete character; each stream has a decoder of its own. */
  detokenizer() {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return {
      feed: (id) => decoder.decode(this.decode_bytes([id]), { stream: true }),
      close: () => decoder.decode(),
    };
  }

  /** A span counts code points: [...text] iterates over them, while text.length counts units of UTF-16. */
  encode_with_offsets(text) {
    const ids = this.encode(text);
    const owner = [...text].flatMap((char, index) => Array(Buffer.byteLength(char)).fill(index));
    let end = 0;
    const offsets = ids.map((id) => {
      const start = end;
      end += this.tokens.get(id).length / 2;
      return [owner[start], owner[end - 1] + 1];
    });
    return { ids, offsets };
  }

  table() {
    return { vocab: [...this.tokens], merges: this.merges };
  }
}

await serve(() => ({
  name: "example.mjs",
  version: "1.0",
  offers: ["encode", "decode", "encode_batch", "decode_bytes", "decode_iterable", "encode_with_offsets"],
  load: ({ vocab, merges, special_tokens }) => new Tokenizer(vocab, merges, special_tokens),
}));
