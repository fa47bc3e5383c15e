// Builds the scripts of ../vendor, and the licences of what is in them. The same sources give
// the same bytes.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const VENDOR = new URL("../vendor/", import.meta.url);

const packages = new Set();
for (const [entry, parts] of [["editor.js", "CodeMirror 6"], ["markdown.js", "micromark"], ["tables.js", "hyparquet and fzstd"]]) {
  const { metafile } = await build({
    entryPoints: [entry],
    outfile: new URL(entry, VENDOR).pathname,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none", // the licences are in a file of their own
    banner: { js: `// Built from playground/editor with ${parts} (MIT): see LICENSES. Do not edit.` },
    metafile: true,
  });
  for (const file of Object.keys(metafile.inputs)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1];
    if (name) packages.add(name);
  }
}

// Most packages share one text: it is written once, below all their names.
const texts = new Map();
for (const name of [...packages].sort()) {
  const { version, license } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
  const file = (await readdir(`node_modules/${name}`)).find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = (await readFile(`node_modules/${name}/${file}`, "utf8")).replaceAll("\r\n", "\n").trim();
  texts.set(text, [...(texts.get(text) || []), `${name} ${version} (${license})`]);
}
const parts = [...texts].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`);
await writeFile(
  new URL("LICENSES", VENDOR),
  `The scripts of vendor/ contain the packages below.\n\n${parts.join(`\n${"-".repeat(79)}\n\n`)}`,
);
