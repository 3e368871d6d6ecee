// Implements the wire protocol (../PROTOCOL.md) for JavaScript. An adapter calls `serve` with a function that describes
// the tokenizer:
//
//     serve(() => ({
//       name: "my tokenizer", version: "1.0",
//       offers: ["encode", "decode"],            // the capabilities; `serve` adds surrogates
//       conventions: {}, model: null,            // optional
//       load: ({ vocab, merges, special_tokens, pattern }) => new Tokenizer(...),
//     }));
//
// `vocab` has pairs of id and token, `merges` has pairs of tokens; a token is the lower-case hex of its bytes. A
// tokenizer can have: encode(text, {allowed_special, disallowed_special}) → ids, with the second argument only if the
// request has these members, encode_batch(texts), decode(ids) → text, decode_bytes(ids) → Uint8Array or hex, table() →
// {vocab, merges}, stream() → {feed(text) → ids, close() → ids}, detokenizer() → {feed(id) → text, close() → text},
// encode_with_offsets(text) → {ids, offsets}, save(folder), free(). Each can be async, and an error that it throws
// becomes a reply. `train(request)`, `from_files(request)` and `from_tokenizer_json(request)` are members like `load`
// and return a tokenizer.
import { Console } from "node:console";
import { createInterface } from "node:readline";

export const toHex = (text) => Buffer.from(text, "utf8").toString("hex");
export const fromHex = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

/** Bytes → text. A TextDecoder strips a leading U+FEFF unless ignoreBOM is true. */
export const utf8 = (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

// A JavaScript string can contain surrogates, so a text that arrives as code points is a string like any other.
const readText = (text) => (typeof text === "string" ? text : text.code_points.map((c) => String.fromCodePoint(c)).join(""));
const readTexts = (texts) => texts?.map(readText) ?? null;
const readChoice = (choice) =>
  Object.fromEntries(Object.entries(choice).map(([name, value]) => [name, value === "all" ? value : readTexts(value)]));

function writeIds(ids) {
  if (typeof ids?.[Symbol.iterator] !== "function") throw new TypeError(`expected a list of ids, got ${typeof ids}`);
  return Array.from(ids, (id) => (typeof id === "bigint" ? Number(id) : id));
}

const writeBytes = (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("hex"));

class Kept {
  constructor(what) {
    this.what = what;
    this.all = new Map();
    this.next = 1;
  }

  add(value) {
    this.all.set(this.next, value);
    return { [this.what]: this.next++ };
  }

  get(handle) {
    if (!this.all.has(handle)) throw new RangeError(`there is no ${this.what} ${handle}`);
    return this.all.get(handle);
  }

  remove(handle) {
    const value = this.get(handle);
    this.all.delete(handle);
    return value;
  }
}

class NotClaimed extends Error {}

function server(open) {
  const models = new Kept("model");
  const streams = new Kept("stream");
  let adapter;

  const read = ({ seq, op, ...fields }) => {
    if ("text" in fields) fields.text = readText(fields.text);
    if ("special_tokens" in fields) fields.special_tokens = readTexts(fields.special_tokens);
    return fields;
  };
  const made = (op) => async (request) => {
    if (adapter[op] === undefined) throw new NotClaimed(`${op} is not supported`);
    return models.add(await adapter[op](read(request)));
  };
  const use = ({ model }, method) => {
    const tokenizer = models.get(model);
    if (typeof tokenizer[method] !== "function") throw new NotClaimed(`${method} is not supported`);
    return tokenizer;
  };

  return {
    start: async () => {
      adapter ??= await open();
      return {
        protocol: 1,
        name: adapter.name,
        version: adapter.version ?? "",
        language: `JavaScript (Node ${process.versions.node})`,
        capabilities: [...adapter.offers, "surrogates"],
        conventions: adapter.conventions ?? {},
        model: adapter.model ?? null,
        pattern: adapter.pattern ?? null,
      };
    },
    load: made("load"),
    train: made("train"),
    from_files: made("from_files"),
    from_tokenizer_json: made("from_tokenizer_json"),
    unload: ({ model }) => void models.remove(model).free?.(),
    table: (request) => use(request, "table").table(),
    encode: async ({ seq, op, model, text, ...choice }) =>
      writeIds(await use({ model }, "encode").encode(readText(text), ...("allowed_special" in choice ? [readChoice(choice)] : []))),
    encode_batch: async (request) =>
      Array.from(await use(request, "encode_batch").encode_batch(readTexts(request.texts)), writeIds),
    decode: (request) => use(request, "decode").decode(request.ids),
    decode_bytes: async (request) => writeBytes(await use(request, "decode_bytes").decode_bytes(request.ids)),
    save: async (request) => void (await use(request, "save").save(request.folder)),
    encode_with_offsets: async (request) => {
      const { ids, offsets } = await use(request, "encode_with_offsets").encode_with_offsets(readText(request.text));
      return { ids: writeIds(ids), offsets };
    },
    stream_open: (request) =>
      streams.add(
        request.method === "decode_iterable"
          ? { inner: use(request, "detokenizer").detokenizer(), write: (text) => ({ deltas: [text] }) }
          : { inner: use(request, "stream").stream(), write: (ids) => ({ ids: writeIds(ids) }) },
      ),
    stream_feed: async ({ stream, text, id }) => {
      const { inner, write } = streams.get(stream);
      return write(await inner.feed(text === undefined ? id : readText(text)));
    },
    stream_close: async ({ stream }) => {
      const { inner, write } = streams.remove(stream);
      return { ...write(await inner.close()), ended: true };
    },
  };
}

const ascii = (json) => json.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// A failed fetch names its reason only as its cause, which can have a code and no message.
const messageOf = (error) =>
  String(error?.message ?? error) + (error?.cause ? `: ${error.cause.message || error.cause.code || error.cause}` : "");

/** Answer requests until the input ends. It calls `open` in the handshake, so that an error becomes a reply. */
export async function serve(open) {
  globalThis.console = new Console(process.stderr, process.stderr); // standard output is the protocol's
  const operations = new Map(Object.entries(server(open)));
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    const reply = { seq: request.seq };
    try {
      if (!operations.has(request.op)) throw new NotClaimed(`${request.op} is not supported`);
      reply.result = (await operations.get(request.op)(request)) ?? null;
    } catch (error) {
      if (error instanceof NotClaimed) reply.not_claimed = error.message;
      else reply.error = { type: error?.name ?? "Error", message: messageOf(error), traceback: error?.stack ?? "" };
    }
    process.stdout.write(ascii(JSON.stringify(reply)) + "\n");
  }
}
