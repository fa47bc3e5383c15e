// Runs the engine beside the page. The first message has the module; each further one is a request
// with an id, which is answered by a message with the same id, and while a run is made by messages of its progress.
// Tables of a results folder come as Parquet files, which vendor/tables.js reads.

let engine;
let job = null;
const REPORT_MS = 100;
const JUDGED_MS = 1500; // after which the time of a run can be told
const MOST_MEMORY = 600e6;

function progress(share) {
  const now = performance.now();
  if (!job || now - job.told < REPORT_MS) return 1;
  job.told = now;
  const left = share > 0 ? ((now - job.began) / share) * (1 - share) : 0;
  postMessage({ progress: share, left_s: left / 1000 });
  // What is long is said before it goes on: a page cannot ask while the engine runs.
  const long_s = (now - job.began) / share / 1000;
  if (job.most_s && now - job.began > JUDGED_MS && long_s > job.most_s) job.long_s = long_s;
  job.is_large = engine.memory.buffer.byteLength > MOST_MEMORY;
  return job.long_s || job.is_large ? 0 : 1;
}

function bytes(content) {
  const at = engine.reserve(content.length);
  new Uint8Array(engine.memory.buffer).set(content, at);
  return [at, content.length];
}

const text = (words) => bytes(new TextEncoder().encode(words));
const answered = (length) => new Uint8Array(engine.memory.buffer, engine.answer(), length).slice();

function ask(request) {
  return JSON.parse(new TextDecoder().decode(answered(engine.ask(...text(JSON.stringify(request))))));
}

function samples(number, received) {
  return new Int16Array(answered(engine.sound(number, received)).buffer);
}

async function read(parquet) {
  const tables = {};
  for (const [name, content] of Object.entries(parquet)) {
    try {
      tables[name] = await TalkspurtTables.columns(content);
    } catch (error) {
      throw new Error(`${name}.parquet cannot be read: ${error.message}`);
    }
  }
  return tables;
}

onmessage = async ({ data: { id, module, files = {}, parquet, most_s, ...request } }) => {
  try {
    if (parquet) request.tables = await read(parquet);
    if (module) engine = (await WebAssembly.instantiate(module, { page: { progress } })).exports;
    for (const [path, content] of Object.entries(files)) engine.add_file(...text(path), ...bytes(content));
    const reply = (what) => postMessage({ id, memory: engine.memory.buffer.byteLength, ...what });
    if (!request.do) return reply({ answer: {} });
    job = { began: performance.now(), told: 0, most_s };
    const answer = ask(request);
    if (job.is_large) throw new Error("the run needs more memory than a page has");
    const { long_s } = job;
    job = null;
    if (long_s) return reply({ answer: { long_s } });
    if (answer.failed) return reply({ failed: answer.failed });
    answer.sounds?.forEach((sound, number) => {
      sound.sent = samples(number, 0);
      sound.received = samples(number, 1);
    });
    return reply({ answer });
  } catch (error) {
    return postMessage({ id, broken: String(error.message ?? error) });
  }
};
