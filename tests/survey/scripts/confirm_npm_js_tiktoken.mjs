// Show the findings in js-tiktoken. Run it with `npm install js-tiktoken@1.0.21`.
import { Tiktoken } from "js-tiktoken/lite";
import cl100k from "js-tiktoken/ranks/cl100k_base";
import gpt2 from "js-tiktoken/ranks/gpt2";
import o200k from "js-tiktoken/ranks/o200k_base";
import { GPT2, check } from "./shared.mjs";

function made(special = [], without = "") {
  const bytes = [...Array(256).keys()].filter((byte) => !without.includes(String.fromCharCode(byte)));
  const lines = bytes.map((byte) => `! ${byte} ${Buffer.from([byte]).toString("base64")}`);
  const special_tokens = Object.fromEntries(special.map((token, place) => [token, 256 + place]));
  return new Tiktoken({ pat_str: GPT2, special_tokens, bpe_ranks: lines.join("\n") });
}

const encoding = new Tiktoken(cl100k);
const possessive = { ...cl100k, pat_str: String.raw`\p{L}++|[^\p{L}]` };
check("SPLIT-SPACE-3", () => encoding.encode("\u0085's"), [126, 227, 596]);
check("MERGE-GPT2-1", () => new Tiktoken(gpt2).encode("\ufeff's"), [171, 119, 123, 6, 82]);
check("SPECIAL-SCAN-1", () => made(["<|a", "<|a|>"]).encode("<|a|>", "all"), [257]);
check("DECODE-UNKNOWN-1", () => made().decode([97, 999]), "an error");
check("ERROR-TABLE-1", () => made([], "z").encode("az"), "an error");
check("ERROR-TABLE-2", () => made([], "z") && "no error", "an error");
check("SPLIT-NAME-1", () => new Tiktoken(possessive).encode("a"), [64]);
check("DECODE-BOM-1", () => made().decode([0xef, 0xbb, 0xbf]), "\ufeff");
check("SPLIT-O200K-3", () => new Tiktoken(o200k).encode("a'\u017f'se"), [64, 6, 70067, 6, 344]);
