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

/** Return a GGUF file with a vocabulary alone: the bytes, the results of the merges, `extra` entries, added tokens. */
export function gguf({ pre = "gpt-2", merges = [], extra = [], added = [] }) {
  const parts = [];
  const bytes = (array) => parts.push(new Uint8Array(array.buffer));
  const long = (value) => bytes(BigUint64Array.of(BigInt(value)));
  const int = (value) => bytes(Uint32Array.of(value));
  const text = (value) => {
    long(Buffer.byteLength(value));
    parts.push(Buffer.from(value));
  };
  const entry = (key, type, value, write = type === 8 ? text : int) => {
    text(key);
    if (Array.isArray(value)) [9, type].forEach(int), long(value.length), value.forEach(write);
    else int(type), write(value);
  };
  const tokens = [...SPELLED, ...merges.map((pair) => pair.join("")), ...extra, ...added];
  const network = ["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"];
  parts.push(Buffer.from("GGUF"));
  int(3);
  [0, 7 + network.length].forEach(long);
  entry("general.architecture", 8, "llama");
  for (const name of network) entry(`llama.${name}`, 4, 1);
  entry("llama.attention.layer_norm_rms_epsilon", 6, 1e-5, (value) => bytes(Float32Array.of(value)));
  entry("tokenizer.ggml.model", 8, "gpt2");
  entry("tokenizer.ggml.pre", 8, pre);
  entry("tokenizer.ggml.tokens", 8, tokens);
  entry("tokenizer.ggml.token_type", 5, tokens.map((_, id) => (id < tokens.length - added.length ? 1 : 4)));
  entry("tokenizer.ggml.merges", 8, merges.map((pair) => pair.join(" ")));
  return Buffer.concat(parts);
}
