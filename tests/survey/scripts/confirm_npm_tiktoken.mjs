// Show the findings in tiktoken. Run it with `npm install tiktoken@1.0.22`.
import { Tiktoken } from "tiktoken";
import { GPT2, check } from "./shared.mjs";

function made(special = [], without = "") {
  const bytes = [...Array(256).keys()].filter((byte) => !without.includes(String.fromCharCode(byte)));
  const lines = bytes.map((byte) => `${Buffer.from([byte]).toString("base64")} ${byte}`);
  return new Tiktoken(lines.join("\n"), Object.fromEntries(special.map((token, place) => [token, 256 + place])), GPT2);
}

const tokens = [1, 2, 3, 4, 5, 6, 7, 8].map((length) => `<|${"a".repeat(length)}`); // their order is that of a hash map
check("SPECIAL-SCAN-1", () => [...made(tokens).encode(tokens[7], "all")], [263]);
check("ERROR-TABLE-2", () => made([], "z") && "no error", "an error");
