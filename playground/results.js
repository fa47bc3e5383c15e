// Reads a results folder that the user drops or chooses: its documents and, when they are asked for, its tables and
// recordings. All that it holds may be hostile: sizes are bounded before anything is read.

const MOST_FILES = 50_000;
const MOST_DEPTH = 6;
const MOST_RUNS = 1000;
const MOST_TEXT = 20e6;
const MOST_TABLE = 150e6;
const MOST_SOUND = 100e6;
const MOST_CAUSES = 40e6; // of all tables that causes are found in
const FORMAT = 1; // of talkspurt/_storage
const CAUSES = ["frames", "events", "gauges", "series"];
const SHOWN = ["flows", "links", "series", "link_series", "gauges", "frames"];

/** The files of what was dropped, by path. It must be called in the event's own turn. */
function dropped(items) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = new Map();
  const walk = async (entry, depth) => {
    if (files.size >= MOST_FILES || depth > MOST_DEPTH) throw new Error("the folder has too many files or folders");
    if (entry.isFile) return files.set(entry.fullPath, await new Promise((resolve, reject) => entry.file(resolve, reject)));
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return null;
      for (const one of some) await walk(one, depth + 1);
    }
  };
  return (async () => {
    for (const entry of entries) await walk(entry, 0);
    return files;
  })();
}

/** The files that were chosen, by path. */
const chosen = (files) => new Map([...files].map((file) => [file.webkitRelativePath || file.name, file]));

/** The name of a flow as the name of a file: `file_name` of talkspurt/_storage/file_access.py. */
async function fileName(name) {
  const safe = name.replaceAll(", ", "-").replace(/[^\p{L}\p{N}._+-]/gu, "_");
  if (safe === name) return name;
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name));
  return `${safe}-${[...new Uint8Array(hash, 0, 4)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Samples of a WAV file with 16 bits, as `player.js` and the engine have them. */
function wave(buffer) {
  const view = new DataView(buffer);
  const tag = (at) => String.fromCharCode(...new Uint8Array(buffer, at, 4));
  if (buffer.byteLength < 44 || tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new Error("no WAV file");
  let format = null;
  for (let at = 12; at + 8 <= buffer.byteLength;) {
    const [name, length] = [tag(at), view.getUint32(at + 4, true)];
    if (name === "fmt " && length >= 16) format = { kind: view.getUint16(at + 8, true), channels: view.getUint16(at + 10, true), rate: view.getUint32(at + 12, true), bits: view.getUint16(at + 22, true) };
    if (name === "data") {
      if (format?.kind !== 1 || format.bits !== 16 || ![1, 2].includes(format.channels) || format.rate < 1000) throw new Error("no WAV file of 16 bits");
      const end = Math.min(at + 8 + length, buffer.byteLength);
      return { ...format, samples: new Int16Array(buffer.slice(at + 8, end - (end - at) % 2)) };
    }
    at += 8 + length + (length % 2);
  }
  throw new Error("a WAV file without data");
}

/** A results folder, of a run or of a study. */
class Results {
  /** `files` by path, one of them the manifest. */
  constructor(files) {
    const manifests = [...files.keys()].filter((path) => /(^|\/)manifest\.json$/.test(path));
    if (!manifests.length) throw new Error("the folder has no manifest.json; choose one that a run wrote");
    const [top] = manifests.sort((one, other) => one.split("/").length - other.split("/").length);
    this.root = top.slice(0, -"manifest.json".length);
    this.files = files;
  }

  file(path) {
    return this.files.get(this.root + path);
  }

  async text(path) {
    const file = this.file(path);
    if (!file) throw new Error(`${path} is missing`);
    if (file.size > MOST_TEXT) throw new Error(`${path} is too large for a page`);
    return file.text();
  }

  async json(path) {
    try {
      return JSON.parse(await this.text(path));
    } catch (error) {
      throw error instanceof SyntaxError ? new Error(`${path} is damaged`) : error;
    }
  }

  /** The study that it is, one run being a study of one, and the request that tells the engine of it. */
  async read() {
    try {
      return await this.told();
    } catch (error) {
      throw error instanceof TypeError ? new Error("a manifest.json is damaged") : error;
    }
  }

  async told() {
    const manifest = await this.json("manifest.json");
    if (!["result", "study"].includes(manifest.kind)) throw new Error("its manifest.json is not that of a result");
    if (manifest.format !== FORMAT) throw new Error(`it was written by another version of talkspurt (${manifest.talkspurt}): use that version's report`);
    const alone = manifest.kind === "result";
    const listed = alone ? [{ folder: "" }] : manifest.runs;
    if (!Array.isArray(listed) || !listed.length) throw new Error("the folder has no runs");
    if (listed.length > MOST_RUNS) throw new Error(`these are ${listed.length} runs, and a page shows at most ${MOST_RUNS}: use the command`);
    this.folders = listed.map(({ folder }) => (folder ? `${folder}/` : ""));
    if (!alone && !this.file(`${this.folders[0]}manifest.json`)) throw new Error("the folders of its runs are not there: use the command");
    const axes = (alone ? [] : manifest.axes).map(({ name, path, labels, numbers, factor }) => ({ name, path, labels, numbers, factor }));
    const runs = [];
    for (const folder of this.folders) {
      const told = await this.json(`${folder}manifest.json`);
      runs.push({
        settings: axes.map(({ name }) => String(told.settings[name])),
        replicate: told.replicate, seed: told.seed, digest: told.digest ?? null, duration_s: told.duration_s,
        imported: "imported" in told, scenario: await this.text(`${folder}scenario.toml`), topology: await this.json(`${folder}topology.json`),
      });
    }
    const replications = manifest.replications ?? 1;
    const confidence = manifest.confidence ?? 0.95;
    return {
      study: { title: String(manifest.title), description: String(manifest.description ?? ""), axes, runs, replications, confidence, duration_s: runs[0].duration_s },
      request: {
        do: "results", replications, confidence, runs,
        axes: axes.map(({ name, path, labels, numbers, factor }) => ({ name, path, labels, numeric: Boolean(numbers), factor: Boolean(factor) })),
      },
    };
  }

  /** The tables of a run as bytes, by name; `wanted`: those to open it, or only those of its answer. */
  async tables(run, wanted) {
    const found = {};
    const names = wanted === "all" ? [...new Set([...SHOWN, ...CAUSES])] : ["flows", ...(this.explains ? CAUSES : [])];
    for (const name of names) {
      const file = this.file(`${this.folders[run]}${name}.parquet`);
      if (file && file.size > MOST_TABLE) throw new Error(`${name}.parquet is too large for a page: use the command`);
      if (file) found[name] = await file.arrayBuffer();
    }
    return found;
  }

  /** Whether the tables that causes are found in are small enough to be read for all runs. */
  get explains() {
    const sizes = this.folders.flatMap((folder) => CAUSES.map((name) => this.file(`${folder}${name}.parquet`)?.size ?? 0));
    return sizes.reduce((sum, size) => sum + size, 0) <= MOST_CAUSES;
  }

  /** What was sent and heard in calls of a run, as the engine gives it. */
  async sounds(run, calls) {
    const found = [];
    let total = 0;
    for (const { name } of calls) {
      const stem = `${this.folders[run]}audio/${await fileName(name)}`;
      const files = ["sent", "received"].map((side) => this.file(`${stem}.${side}.wav`));
      total += files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
      if (files.includes(undefined)) continue;
      if (total > MOST_SOUND) {
        found.limited = `No audio: a page holds ${MOST_SOUND / 1e6} MB of it; the rest is in audio/ of the folder.`;
        found.left = [...(found.left ?? []), name];
        continue;
      }
      const [sent, received] = await Promise.all(files.map(async (file) => wave(await file.arrayBuffer())));
      found.push({ flow: name, rate: received.rate, channels: received.channels, sent: sent.samples, received: received.samples });
    }
    return found;
  }
}

globalThis.TalkspurtResults = { Results, dropped, chosen };
