// Show the findings in gpt-3-encoder. Run it with `npm install gpt-3-encoder@1.1.4`.
import { decode, encode } from "gpt-3-encoder";
import { check } from "./shared.mjs";

check("MERGE-GPT2-1", () => encode("\ufeff's"), [171, 119, 123, 6, 82]);
check("SPECIAL-ID-1", () => encode("Hi<|endoftext|> there"), [17250, 50256, 612]);
check("DECODE-BOM-1", () => decode([171, 119, 123]), "\ufeff");
