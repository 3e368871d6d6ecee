// The npm package @huggingface/tokenizers, the tokenizers of Transformers.js, with a model's tokenizer.json:
//
//     node adapters/languages/transformersjs.mjs tokenizer.json
//
// `--adapter transformersjs:PATH` runs it.
import { readFileSync } from "node:fs";

import { installed, modelFile, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const NAME = "@huggingface/tokenizers";
const file = modelFile();

class Tokenizer {
  constructor(tokenizer) {
    this.tokenizer = tokenizer;
  }

  encode(text) {
    return this.tokenizer.encode(text, { add_special_tokens: false }).ids;
  }

  decode(ids) {
    return this.tokenizer.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  }
}

await serve(() => {
  const json = JSON.parse(readFileSync(file, "utf8"));
  const tokenizer = new (installed(NAME).Tokenizer)(json, { clean_up_tokenization_spaces: false });
  return { name: NAME, version: versionOf(NAME), offers: ["encode", "decode"], model: file, load: () => new Tokenizer(tokenizer) };
});
