// Show the findings in gpt-tokenizer. Run it with `npm install gpt-tokenizer@4.0.0`.
import { BytePairEncodingCore } from "gpt-tokenizer/BytePairEncodingCore";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as gpt2 from "gpt-tokenizer/encoding/gpt2";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import { GPT2, check } from "./shared.mjs";

function made(special = [], without = "") {
  const bytePairRankDecoder = [];
  for (let byte = 0; byte < 256; byte++) {
    if (!without.includes(String.fromCharCode(byte)) || without === "") {
      bytePairRankDecoder[byte] = byte < 128 ? String.fromCharCode(byte) : [byte];
    }
  }
  const specialTokensEncoder = new Map(special.map((token, place) => [token, 256 + place]));
  return new BytePairEncodingCore({ bytePairRankDecoder, specialTokensEncoder, tokenSplitRegex: new RegExp(GPT2, "gu") });
}

const FOX = [9468, 99, 232]; // its four bytes, with cl100k
const streamed = (ids) => [...cl100k.decodeGenerator(ids)].join("");

/** Return a text that is streamed after another one, which is cut inside a character. */
function after(ids, cut) {
  streamed(FOX); // all decoders share their state, so an earlier text has to end with a character
  const first = streamed(cut);
  return [first, streamed(ids)];
}

const all = { allowedSpecial: "all" };
const overlapping = ["<|a", "<|a|>"];
check("DECODE-BOM-1", () => o200k.decode([5574]), "\ufeff"); // the first call of all
check("SPECIAL-ORDER-1", () => made(overlapping).encodeNative("<|a|>", new Set(overlapping)), [257]);
check("DECODE-SPECIAL-1", () => made(["<|e|>"]).decodeNative([0xe2, 256, 0x82, 0xac]), "\ufffd<|e|>\ufffd\ufffd");
check("SPLIT-SPACE-3", () => cl100k.encode("\u0085's"), [126, 227, 596]);
check("ERROR-TABLE-2", () => made([], "z") && "no error", "an error");
check("SPECIAL-ID-1", () => gpt2.encode("Hi<|endoftext|> there", all), [17250, 50256, 612]);
check("SPECIAL-SCAN-1", () => cl100k.encode("<|endoftext|><|endoftext|>", all), [100257, 100257]);
check("DECODE-UTF8-1", () => [cl100k.decode([9468]), cl100k.decode([9468, 99, 232])], ["\ufffd", "\u{1f98a}"]);
check("BYTES-TEXT-2", () => o200k.encode("\ufeff"), [5574]);
check("DETOK-END-1", () => after(FOX, FOX.slice(0, 1))[0], "\ufffd");
check("DETOK-STATE-1", () => after(FOX, FOX.slice(0, 2))[1], "\u{1f98a}");
check("DETOK-INVALID-1", () => after([], [9468, 64])[0], "\ufffda");
check("DETOK-UNKNOWN-1", () => after([], [64, 300000])[0], "an error");
check("SPLIT-O200K-3", () => o200k.encode("a'\u017f'se"), [64, 6, 70067, 6, 344]);
