// Show the findings in gpt-3-encoder. Run it with `npm install gpt-3-encoder@1.1.4`.
import { decode, encode } from "gpt-3-encoder";

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

check("MERGE-GPT2-1", () => encode("\ufeff's"), [171, 119, 123, 6, 82]);
check("SPECIAL-ID-1", () => encode("Hi<|endoftext|> there"), [17250, 50256, 612]);
check("DECODE-BOM-1", () => decode([171, 119, 123]), "\ufeff");
process.exit(failed ? 1 : 0);
