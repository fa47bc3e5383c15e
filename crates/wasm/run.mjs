// Runs scenarios in the module, as a page would: node crates/wasm/run.mjs MODULE FOLDER SCENARIO [FILE...]
// The scenario and the files it names are paths in FOLDER. Prints the answer as JSON.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [module, folder, scenario, ...files] = process.argv.slice(2);
const compiled = await WebAssembly.compile(readFileSync(module));
const imports = WebAssembly.Module.imports(compiled);
if (imports.length > 0) {
  throw new Error(`imports: ${imports.map((it) => `${it.module}.${it.name}`).join(", ")}`);
}
const { exports: talkspurt } = await WebAssembly.instantiate(compiled);

function bytes(content) {
  const start = talkspurt.reserve(content.length);
  new Uint8Array(talkspurt.memory.buffer).set(content, start);
  return [start, content.length];
}
const text = (words) => bytes(new TextEncoder().encode(words));

for (const file of [scenario, ...files]) {
  talkspurt.add_file(...text(`/${file}`), ...bytes(readFileSync(join(folder, file))));
}
const length = talkspurt.run(...text(`/${scenario}`));
const answer = new Uint8Array(talkspurt.memory.buffer, talkspurt.answer(), length);
process.stdout.write(new TextDecoder().decode(answer));
