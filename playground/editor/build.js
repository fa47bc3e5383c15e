// Builds ../vendor/editor.js, and the licences of what is in it. The same sources give the same bytes.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const VENDOR = new URL("../vendor/", import.meta.url);

const { metafile } = await build({
  entryPoints: ["editor.js"],
  outfile: new URL("editor.js", VENDOR).pathname,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none", // the licences are in a file of their own
  banner: { js: "// Built from playground/editor with CodeMirror 6 (MIT): see editor.LICENSES. Do not edit." },
  metafile: true,
});

const packages = new Set(
  Object.keys(metafile.inputs).map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]).filter(Boolean),
);
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
  new URL("editor.LICENSES", VENDOR),
  `vendor/editor.js contains the packages below.\n\n${parts.join(`\n${"-".repeat(79)}\n\n`)}`,
);
