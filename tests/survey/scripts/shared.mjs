// Code that the scripts share. Copy it together with a script.
export const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/** Print the answer of `call` and the expected one; the process exits with 1 if an answer differed. */
export function check(clause, call, expected) {
  let got;
  try {
    got = call();
  } catch (error) {
    got = expected === "an error" ? expected : String(error);
  }
  const [shown, wanted] = [got, expected].map((value) => JSON.stringify(value) ?? String(value));
  if (shown !== wanted) process.exitCode = 1;
  console.log(`${clause}: ${shown}, expected ${wanted}`);
}

const visible = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
let next = 256;
/** Byte → its character in GPT-2's byte map. */
export const SPELLED = [...Array(256).keys()].map((byte) => String.fromCharCode(visible(byte) ? byte : next++));

/** Return a vocabulary-only GGUF file: the bytes, the results of the merges, then the added tokens. */
export function gguf({ pre = "gpt-2", merges = [], added = [] }) {
  const parts = [];
  const integer = (value) => parts.push(new Uint8Array(Uint32Array.of(value).buffer));
  const long = (value) => parts.push(new Uint8Array(BigUint64Array.of(BigInt(value)).buffer));
  const text = (value) => {
    const bytes = new TextEncoder().encode(value);
    long(bytes.length);
    parts.push(bytes);
  };
  const list = (type, values, write) => [() => integer(9), () => integer(type), () => long(values.length), ...values.map((value) => () => write(value))];
  const string = (value) => [() => integer(8), () => text(value)];
  const number = (value) => [() => integer(4), () => integer(value)];
  const tokens = [...SPELLED, ...merges.map((pair) => pair.join("")), ...added];
  const values = {
    "general.architecture": string("llama"),
    ...Object.fromEntries(["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count", "rope.dimension_count"].map((name) => [`llama.${name}`, number(8)])),
    "llama.attention.layer_norm_rms_epsilon": [() => integer(6), () => parts.push(new Uint8Array(Float32Array.of(1e-5).buffer))],
    "tokenizer.ggml.model": string("gpt2"),
    "tokenizer.ggml.pre": string(pre),
    "tokenizer.ggml.tokens": list(8, tokens, text),
    "tokenizer.ggml.token_type": list(5, tokens.map((_, id) => (id < tokens.length - added.length ? 1 : 4)), integer),
    "tokenizer.ggml.merges": list(8, merges.map((pair) => pair.join(" ")), text),
  };
  parts.push(new TextEncoder().encode("GGUF"));
  integer(3);
  long(0);
  long(Object.keys(values).length);
  for (const [key, writes] of Object.entries(values)) {
    text(key);
    for (const write of writes) write();
  }
  return Buffer.concat(parts);
}
