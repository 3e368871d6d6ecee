// The npm packages gpt-3-encoder and gpt3-tokenizer, which have only GPT-2's table:
//
//     pytest conformance --adapter "cmd:node adapters/languages/gpt3.mjs gpt-3-encoder"
//     pytest conformance --adapter "cmd:node adapters/languages/gpt3.mjs gpt3-tokenizer"
import { installed, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const PACKAGES = {
  "gpt-3-encoder": ({ encode, decode }) => ({ encode, decode }),
  "gpt3-tokenizer": ({ default: Tokenizer }) => {
    const tokenizer = new Tokenizer({ type: "gpt3" });
    return { encode: (text) => tokenizer.encode(text).bpe, decode: (ids) => tokenizer.decode(ids) };
  },
};
const name = process.argv[2];
if (!(name in PACKAGES)) {
  console.error(`name one of the packages ${Object.keys(PACKAGES).join(", ")}`);
  process.exit(2);
}

await serve(() => ({
  name,
  version: versionOf(name),
  offers: ["encode", "decode"],
  model: "gpt2",
  load: () => PACKAGES[name](installed(name)),
}));
