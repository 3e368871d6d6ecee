// Show the findings in gpt3-tokenizer. Run it with `npm install gpt3-tokenizer@1.1.5`.
import { createRequire } from "node:module";
import { check } from "./shared.mjs";

const { default: Tokenizer } = createRequire(import.meta.url)("gpt3-tokenizer");
const tokenizer = new Tokenizer({ type: "gpt3" });
check("MERGE-GPT2-1", () => tokenizer.encode("\ufeff's").bpe, [171, 119, 123, 6, 82]);
check("SPECIAL-ID-1", () => tokenizer.encode("Hi<|endoftext|> there").bpe, [17250, 50256, 612]);
check("DECODE-BOM-1", () => tokenizer.decode([171, 119, 123]), "\ufeff");
