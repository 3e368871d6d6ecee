// Show the findings in @huggingface/tokenizers. Run it with `npm install @huggingface/tokenizers@0.2.0`.
import { Tokenizer } from "@huggingface/tokenizers";
import { check } from "./shared.mjs";

const CL100K = String.raw`(?i:'(?:[sdmt]|ll|ve|re))|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s++$|\s*[\r\n]|\s+(?!\S)|\s`;
const plain = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
let next = 256;
const spelling = [...Array(256).keys()].map((byte) => String.fromCharCode(plain(byte) ? byte : next++));

function made({ pattern = null, merges = [], without = "", normalizer = null, added = [], flags = {}, steps } = {}) {
  const vocab = Object.fromEntries(spelling.map((token, byte) => [token, byte]).filter(([token]) => token !== without));
  merges.forEach((pair, rank) => (vocab[pair.join("")] = 256 + rank));
  const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: pattern === null };
  const split = { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
  const pretokenizers = steps ?? (pattern === null ? [level] : [split, level]);
  const pre_tokenizer = pretokenizers.length > 1 ? { type: "Sequence", pretokenizers } : pretokenizers[0];
  const model = { type: "BPE", vocab, merges };
  const added_tokens = added.map((content, index) => ({ id: 256 + index, content, special: true, normalized: false }));
  Object.assign(added_tokens.at(-1) ?? {}, flags);
  added_tokens.forEach(({ id, content }) => (vocab[content] = id));
  const json = { model, added_tokens, normalizer, post_processor: null, pre_tokenizer, decoder: level };
  return new Tokenizer(json, { clean_up_tokenization_spaces: false });
}

const encode = (text, options) => made(options).encode(text, { add_special_tokens: false }).ids;
const [space, line] = [spelling[32], spelling[10]];
check("SPLIT-SPACE-3", () => encode("\ufeff's", { merges: [["'", "s"]] }), [239, 187, 191, 39, 115]);
check("DECODE-EMPTY-1", () => made().decode([]), "");
check("DECODE-UNKNOWN-1", () => made().decode([97, 999]), "an error");
check("ERROR-TABLE-1", () => encode("az", { without: "z" }), "an error");
check("SPLIT-CL100K-5", () => encode("a \nb", { pattern: CL100K, merges: [[space, line]] }), [97, 256, 98]);
check("SPLIT-CL100K-1", () => encode("'\u017fa", { pattern: CL100K, merges: [["\xbf", "a"]] }), [39, 197, 191, 97]);
check("PIPELINE-ORDER-1", () => encode("\uff1ct>", { normalizer: { type: "NFKC" }, added: ["<t>"] }), [60, 116, 62]);
const level = (use_regex) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex });
const cut = (Regex, behavior, invert) => [{ type: "Split", pattern: { Regex }, behavior, invert }, level(false)];
const each = { type: "Digits", individual_digits: true };
const signs = { type: "Punctuation", behavior: "Isolated" };
const joined = (left, right) => [[left, right]];
check("PIPELINE-WORD-1", () => encode("xab", { added: ["ab"], flags: { single_word: true } }), [120, 97, 98]);
check("PIPELINE-STRIP-1", () => encode("\x85<m>", { added: ["<m>"], flags: { lstrip: true } }), [256]);
const removed = { type: "Split", pattern: { String: "-" }, behavior: "Removed", invert: false };
check("PIPELINE-SPLIT-1", () => encode("a-b", { steps: [removed, level(false)] }), [97, 98]);
check("PIPELINE-SPLIT-2", () => encode("--", { steps: cut("-", "Contiguous", false), merges: joined("-", "-") }), [256]);
check("PIPELINE-SPLIT-3", () => encode("a1", { steps: cut("[0-9]", "Isolated", true) }), [97, 49]);
check("PIPELINE-DIGITS-1", () => encode("\xbdx", { steps: [each, level(false)], merges: joined("\xbd", "x") }), [194, 189, 120]);
check("PIPELINE-PUNCTUATION-1", () => encode("!?", { steps: [signs, level(false)], merges: joined("!", "?") }), [33, 63]);
check("PIPELINE-MAPPED-1", () => encode("\xb2", { steps: [level(true), each], merges: joined("\xc2", "\xb2") }), [194, 178]);
