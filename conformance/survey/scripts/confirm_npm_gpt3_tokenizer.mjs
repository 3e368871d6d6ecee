// Show the findings in gpt3-tokenizer. Run it with `npm install gpt3-tokenizer@1.1.5`.
import { createRequire } from "node:module";

let failed = false;

/** Print the answer of `call` and the expected one. */
function check(clause, call, expected) {
  let got;
  try {
    got = call();
  } catch (error) {
    got = expected === "an error" ? expected : String(error);
  }
  const [shown, wanted] = [got, expected].map((value) => JSON.stringify(value) ?? String(value));
  if (shown !== wanted) failed = true;
  console.log(`${clause}: ${shown}, expected ${wanted}`);
}

const { default: Tokenizer } = createRequire(import.meta.url)("gpt3-tokenizer");
const tokenizer = new Tokenizer({ type: "gpt3" });
check("MERGE-GPT2-1", () => tokenizer.encode("\ufeff's").bpe, [171, 119, 123, 6, 82]);
check("SPECIAL-ID-1", () => tokenizer.encode("Hi<|endoftext|> there").bpe, [17250, 50256, 612]);
check("DECODE-BOM-1", () => tokenizer.decode([171, 119, 123]), "\ufeff");
process.exit(failed ? 1 : 0);
