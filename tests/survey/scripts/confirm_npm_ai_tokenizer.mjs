// Show the findings in ai-tokenizer. Run it with `npm install ai-tokenizer@1.0.6`.
import { Tokenizer } from "ai-tokenizer";
import * as cl100k from "ai-tokenizer/encoding/cl100k_base";
import * as o200k from "ai-tokenizer/encoding/o200k_base";
import * as p50k from "ai-tokenizer/encoding/p50k_base";
import { GPT2, check } from "./shared.mjs";

function made({ learned = [], without = "", special = {} } = {}) {
  const data = { name: "table", pat_str: GPT2, special_tokens: special, stringEncoder: {}, binaryEncoder: [], decoder: {} };
  for (let byte = 0; byte < 256; byte++) {
    const token = byte < 128 ? String.fromCharCode(byte) : Uint8Array.of(byte);
    if (token === without) continue;
    data.decoder[byte] = token;
    if (byte < 128) data.stringEncoder[token] = byte;
    else data.binaryEncoder.push([token, byte]);
  }
  learned.forEach((token, rank) => {
    data.decoder[256 + rank] = token;
    data.stringEncoder[token] = 256 + rank;
  });
  return new Tokenizer(data);
}

const [cl, o2, p5] = [cl100k, o200k, p50k].map((data) => new Tokenizer(data));
check("SPLIT-FENCE-1", () => made({ learned: ["a ", "a b"] }).encode("a b"), [97, 32, 98]);
check("MERGE-ORDER-1", () => p5.encode("constructor"), [41571, 273]);
check("SPECIAL-SCAN-1", () => p5.encode("a<|endoftext|>b", "all"), [64, 50256, 65]);
const overlapping = { "<|a": 256, "<|a|>": 257 };
check("SPECIAL-ORDER-1", () => made({ special: overlapping }).encode("<|a|>", Object.keys(overlapping)), [257]);
check("ERROR-TABLE-1", () => made({ without: "z" }).encode("az"), "an error");
check("DECODE-UNKNOWN-1", () => made().decode([97, 999]), "an error");
check("DECODE-BOM-1", () => made().decode([0xef, 0xbb, 0xbf, 97]), "\ufeffa");
check("SPLIT-SPACE-3", () => cl.encode("  \u0085"), [256, 126, 227]);
check("BYTES-TEXT-2", () => o2.encode("\ufeffS"), [5574, 50]);
check("SPLIT-O200K-3", () => o2.encode("a'\u017f'se"), [64, 6, 70067, 6, 344]);
