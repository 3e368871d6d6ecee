// Code that the scripts share. Copy it together with a script.
export const GPT2 = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/** Print the answer of `call` and the expected one; the process exits with 1 if an answer differed. */
export function check(clause, call, expected) {
  let got;
  try {
    got = call();
  } catch (error) {
    got = expected === "an error" ? expected : String(error);
  }
  const [shown, wanted] = [got, expected].map((value) => JSON.stringify(value) ?? String(value));
  if (shown !== wanted) process.exitCode = 1;
  console.log(`${clause}: ${shown}, expected ${wanted}`);
}
