// llama.cpp, as the npm package node-llama-cpp ships it, with the vocabulary of a GGUF file:
//
//     node adapters/languages/llamacpp.mjs model.gguf
//
// `--adapter llamacpp:PATH` runs it so.
import { imported, modelFile, versionOf } from "./npm.mjs";
import { serve } from "./protocol.mjs";

const NAME = "node-llama-cpp";
const file = modelFile();

class Tokenizer {
  constructor(model) {
    this.model = model;
  }

  encode(text) {
    return this.model.tokenize(text, true);
  }

  decode(ids) {
    return this.model.detokenize(ids, true);
  }
}

async function open() {
  const { getLlama } = await imported(NAME);
  const said = [];
  const logger = (level, message) => said.push(message.trim());
  const llama = await getLlama({ build: "never", gpu: false, progressLogs: false, logLevel: "error", logger });
  try {
    return await llama.loadModel({ modelPath: file, vocabOnly: true });
  } catch (error) {
    const why = said.filter((line) => !line.includes("missing tensor")).find((line) => line.includes("error"));
    throw new Error(why ?? error.message);
  }
}

await serve(async () => {
  const tokenizer = new Tokenizer(await open());
  const version = `${versionOf(NAME)} of ${NAME}`;
  return { name: "llama.cpp", version, offers: ["encode", "decode"], model: file, load: () => tokenizer };
});
