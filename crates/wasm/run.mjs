// Runs scenarios in the module, as a page would: node crates/wasm/run.mjs MODULE FOLDER SCENARIO [FILE...]
// The scenario and the files it names are paths in FOLDER. Prints JSON: what `load` answers, the answer of
// all runs, and each run opened, with its tables of flows and links, the first also with its animation.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [module, folder, scenario, ...files] = process.argv.slice(2);
const compiled = await WebAssembly.compile(readFileSync(module));
const imports = WebAssembly.Module.imports(compiled).map((it) => `${it.module}.${it.name}`);
if (imports.join() !== "page.progress") {
  throw new Error(`imports: ${imports}`);
}
let told = 0;
const page = {
  progress(share) {
    if (!(share >= 0 && share <= 1)) throw new Error(`progress: ${share}`);
    told++;
    return 1;
  },
};
const { exports: talkspurt } = await WebAssembly.instantiate(compiled, { page });

function bytes(content) {
  const start = talkspurt.reserve(content.length);
  new Uint8Array(talkspurt.memory.buffer).set(content, start);
  return [start, content.length];
}
const text = (words) => bytes(new TextEncoder().encode(words));

function answered(length) {
  return new Uint8Array(talkspurt.memory.buffer, talkspurt.answer(), length).slice();
}
function ask(request) {
  return JSON.parse(new TextDecoder().decode(answered(talkspurt.ask(...text(JSON.stringify(request))))));
}

for (const file of files) {
  talkspurt.add_file(...text(`/${file}`), ...bytes(readFileSync(join(folder, file))));
}
const loaded = ask({ do: "load", path: `/${scenario}`, text: readFileSync(join(folder, scenario), "utf8") });
const runs = (loaded.runs ?? []).map((_, run) => ask({ do: "run", run }));
const all = runs.length ? ask({ do: "answer" }) : {};
for (const [number, run] of runs.entries()) {
  if (run.failed) continue;
  Object.assign(run, ask({ do: "open", run: number }));
  if (number === 0) Object.assign(run, ask({ do: "animation", run: number }));
  Object.assign(run, run.columns);
  run.heard = run.sounds.map((_, n) => [0, 1].map((side) => answered(talkspurt.sound(n, side)).length));
}
process.stdout.write(JSON.stringify({ ...loaded, ...all, runs, told, memory: talkspurt.memory.buffer.byteLength }));
