// What the page loads and shares: parts that are embedded or fetched, the engine in its worker (worker.js), and
// scenarios packed into an address.

const MOST_TEXT = 1_000_000; // of a link or a file, in characters

const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const embedded = (id) => document.getElementById(id)?.textContent;
const streamed = (bytes) => new Blob([bytes]).stream();

/** The stream of a part of the page, which is in it or a file beside it. */
async function part(id, file) {
  if (embedded(id)) return streamed(bytesOf(embedded(id)));
  const answer = await fetch(file);
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  return answer.body;
}

/** A module, compiled while it arrives. */
async function compiled(id, file) {
  const stream = (await part(id, file)).pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }));
}

/** The engine in its worker. Requests wait for each other. */
class Engine {
  /** `module`: a promise of it. */
  constructor(module, watch) {
    this.module = module;
    this.watch = watch;
    this.files = {};
    this.start();
  }

  start() {
    const source = embedded("worker");
    this.worker = source
      ? new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))
      : new Worker("worker.js");
    this.asked = new Map();
    this.next = 0;
    this.loaded = null; // what the page has loaded into it
    this.memory = 0; // in bytes
    this.worker.onmessage = ({ data }) => {
      if (data.id === undefined) return this.watch(data);
      if (data.broken !== undefined) {
        // After a trap the memory of the module is not to be relied on.
        return this.stop(new Error(`${data.broken}; use the command`));
      }
      this.memory = data.memory;
      const { resolve, reject } = this.asked.get(data.id);
      this.asked.delete(data.id);
      return data.failed === undefined ? resolve(data.answer) : reject(new Error(data.failed));
    };
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.stop(new Error(event.message || "the worker was ended"));
    };
    const { worker } = this;
    this.ready = this.module.then((module) => (worker === this.worker ? this.post({ module, files: this.files }) : this.ready));
    this.ready.catch(() => {});
  }

  post(message) {
    return new Promise((resolve, reject) => {
      this.asked.set(this.next, { resolve, reject });
      this.worker.postMessage({ id: this.next++, ...message });
    });
  }

  async ask(request) {
    await this.ready;
    return this.post(request);
  }

  add(files) {
    Object.assign(this.files, files);
    return this.ask({ files });
  }

  /** Ends the worker, with all that it does, and starts another one. */
  stop(reason = new Error("stopped")) {
    this.worker.terminate();
    const waiting = [...this.asked.values()];
    this.start();
    waiting.forEach(({ reject }) => reject(reason));
  }
}

// A share of a page by its address: the scenario as compressed text behind "#".

async function read(stream, most = 4 * MOST_TEXT) {
  const reader = stream.getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) throw new Error("the scenario is too long");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The data of the page as `data` of build.py puts it together. */
function unfolded(bytes) {
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  const contents = data.contents.map(({ bytes: count, folded }) => {
    const part = bytes.slice(at, (at += count));
    if (!folded) return part;
    const words = new Uint16Array(count >> 1);
    let [step, word] = [0, 0];
    for (let i = 0; i < words.length; i++) {
      step += part[i] | (part[words.length + i] << 8);
      words[i] = word += step;
    }
    part.set(new Uint8Array(words.buffer));
    return part;
  });
  return { data, contents };
}

async function packed(value) {
  const bytes = await read(streamed(new TextEncoder().encode(JSON.stringify(value))).pipeThrough(new CompressionStream("deflate-raw")));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const isSets = (sets) => Array.isArray(sets) && sets.length < 100 && sets.every((set) => Array.isArray(set) && set.length === 2 && set.every((part) => typeof part === "string"));

async function unpacked(text) {
  if (text.length > MOST_TEXT) throw new Error("the link is too long");
  const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
  const found = JSON.parse(new TextDecoder().decode(await read(streamed(bytes).pipeThrough(new DecompressionStream("deflate-raw")))));
  if (typeof found?.text !== "string" || typeof found.path !== "string" || found.text.length > MOST_TEXT || !isSets(found.sets ?? [])) throw new Error("the link holds no scenario");
  return found;
}

// Asked for before the other scripts are there; page.js says what fails.
const asked = typeof DecompressionStream === "function" && typeof WebAssembly === "object"
  ? { data: part("data", "data.gz"), module: compiled("engine", "engine.wasm.gz") } : {};
for (const promise of Object.values(asked)) promise.catch(() => {});

globalThis.TalkspurtEngine = { Engine, MOST_TEXT, asked, compiled, embedded, packed, read, unfolded, unpacked };
