// Reads the Parquet tables of a results folder in the playground's worker. hyparquet (MIT) is small, maintained and
// pure JavaScript; a reader in Rust would add more to the engine than the page has space for.

import { parquetMetadataAsync, parquetRead } from "hyparquet";
import { decompress } from "fzstd";

const MOST_CELLS = 4e7;

function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  return typeof value === "string" ? value : null;
}

/** The columns of a table by name, values as numbers and texts. `wanted` are those to read: all if there are none. */
async function columns(buffer, wanted) {
  const metadata = await parquetMetadataAsync(buffer);
  const known = metadata.schema.slice(1).map(({ name }) => name);
  const names = wanted ? known.filter((name) => wanted.includes(name)) : known;
  const rows = Number(metadata.num_rows);
  if (!(rows * names.length <= MOST_CELLS)) throw new Error("it is too large for a page");
  const found = Object.fromEntries(names.map((name) => [name, new Array(rows).fill(null)]));
  await parquetRead({
    file: buffer,
    metadata,
    columns: names,
    compressors: { ZSTD: (input) => decompress(input) },
    onChunk: ({ columnName, columnData, rowStart }) => {
      for (let at = 0; at < columnData.length; at++) found[columnName][rowStart + at] = plain(columnData[at]);
    },
  });
  return found;
}

globalThis.TalkspurtTables = { columns };
