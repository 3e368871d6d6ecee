// Code that the adapters for npm packages share: the search for packages, and tables in tiktoken's form.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { fromHex, toHex, utf8 } from "./protocol.mjs";

/** GPT-2's pattern as these packages ship it. */
export const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/** The suite's name of a model → the packages' name of the encoding. */
export const ENCODINGS = { gpt2: "gpt2", cl100k: "cl100k_base", o200k: "o200k_base" };

/** Return the model that the command line names: one of ENCODINGS, or null if the suite passes the tables. */
export function modelNamed() {
  const model = process.argv[2] ?? null;
  if (model === null || model in ENCODINGS) return model;
  console.error(`there is no model ${model}; there are ${Object.keys(ENCODINGS).join(", ")}`);
  return process.exit(2);
}

/** Return the path of a model's file that the command line names, or null. */
export const modelFile = () => process.argv[2] ?? null;

const require = createRequire(join(process.cwd(), "package.json"));

/** Return the result of `find` for a name, or throw a one-line error that says what to install. */
function located(find, name) {
  try {
    return find(name);
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND" || !error.message.includes(name)) throw error;
    throw new Error(`${error.message.split("\n")[0]}; install it in the current directory, or set NODE_PATH`);
  }
}

/** Return a package from node_modules in the current directory, or from NODE_PATH. */
export const installed = (name) => located(require, name);

/** The same for a package that only `import` loads. */
export const imported = (name) => import(pathToFileURL(located(require.resolve, name)));

/** Return the version of an installed package, which need not export its package.json. */
export function versionOf(name) {
  let folder = dirname(located(require.resolve, name));
  for (;;) {
    const file = join(folder, "package.json");
    const found = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
    if ((found.name === name && found.version) || folder === dirname(folder)) return found.version ?? "";
    folder = dirname(folder);
  }
}

/**
 * Return a table in tiktoken's form, which has no merges: a token's id is its rank.
 * `ordinary` has pairs of hex and id; `special` maps text to id. A special token without an entry gets the next id.
 */
export function ranksOf({ vocab, merges, special_tokens }) {
  const ids = new Map(vocab.map(([id, token]) => [token, id]));
  if (ids.size !== vocab.length) throw new Error("ranks cannot hold this table: two ids have the same bytes");
  const results = merges.map(([left, right]) => left + right);
  const order = results.map((token) => ids.get(token)).filter((id) => id !== undefined);
  if (order.some((id, place) => place > 0 && order[place - 1] >= id)) {
    throw new Error("ranks cannot hold this table: its ids are not in the order of the merges");
  }
  const special = Object.create(null);
  const tokens = new Map(vocab);
  let next = vocab.reduce((most, [id]) => Math.max(most, id), -1) + 1;
  for (const text of new Set(special_tokens ?? [])) {
    if (text === "") throw new Error("a special token is empty");
    special[text] = ids.get(toHex(text)) ?? next++;
    tokens.set(special[text], toHex(text));
  }
  const learned = new Set(results);
  const names = new Set(Object.keys(special).map(toHex));
  const ordinary = vocab.filter(([, token]) => token.length === 2 || learned.has(token) || !names.has(token));
  return { ordinary: ordinary.map(([id, token]) => [token, id]), special, table: { vocab: [...tokens], merges } };
}

/** A token in the form of packages that look tokens up as text: a string, or a list of bytes that are not UTF-8. */
export function spelled(token) {
  const bytes = fromHex(token);
  const text = utf8(bytes);
  return Buffer.from(text, "utf8").equals(Buffer.from(bytes)) ? text : [...bytes];
}
