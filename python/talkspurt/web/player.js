// The player as an element of any page: <talkspurt-player>, with report.css. All signals are over one
// timeline. The shown signals play at the same time, and all but one are muted, so that a switch takes
// effect at the same sample. A blind test (A/B/X) plays two of them. Its method `show` takes, and without
// a call of it the script element with the id "player" contains, JSON:
//
//   colours: { outcome: colour }     of voice frames, in the order of the legend
//   recordings                       [{ rate, samples }], or the fields of recordings.py: compressed blocks
//   signals: [{ name, recording, chosen }]
//
// and of a signal that is a call: fates, frame_s, colour, title, subtitle, over, score (label, text,
// outside: the model whose range it is outside of), rank, notes, silence (why it has no sound).

const MOST_SHOWN = 8;
const FADE_S = 0.004; // a switch without a click

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** The samples of each recording, as 16-bit integers. */
async function unpacked({ block, pool, steps, recordings }) {
  if (!pool) return recordings;
  const samples = new Int16Array(await inflated(pool));
  const differences = new Int32Array(await inflated(steps));
  let at = 0;
  let number = 0;
  return recordings.map((recording) => {
    const found = new Int16Array(Math.ceil(recording.samples / block) * block);
    for (let place = 0; place < found.length; place += block) {
      number += differences[at++];
      found.set(samples.subarray(number * block, (number + 1) * block), place);
    }
    return { rate: recording.rate, samples: found.subarray(0, recording.samples) };
  });
}

/** A WAV file of these samples, padded to `seconds`; a browser decodes it at the rate of its output. */
function wav({ rate, samples }, seconds) {
  const bytes = new ArrayBuffer(44 + Math.round(seconds * rate) * 2);
  const view = new DataView(bytes);
  const text = (at, word) => [...word].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, bytes.byteLength - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, bytes.byteLength - 44, true);
  samples.forEach((sample, i) => view.setInt16(44 + i * 2, sample, true));
  return bytes;
}

/** Plays several buffers at the same time through one gain each; one of them is audible. */
class Deck {
  constructor(context) {
    this.context = context;
    this.voices = [];
  }

  /** Starts all at `offset` seconds; with a `loop` of [from, to] seconds, repeats it. */
  start(buffers, audible, offset, loop) {
    this.stop();
    const at = this.context.currentTime;
    this.began = at - offset;
    this.loop = loop;
    this.voices = buffers.map((buffer, i) => {
      const source = new AudioBufferSourceNode(this.context, { buffer });
      if (loop) Object.assign(source, { loop: true, loopStart: loop[0], loopEnd: loop[1] });
      const gain = new GainNode(this.context, { gain: i === audible ? 1 : 0 });
      source.connect(gain).connect(this.context.destination);
      if (offset < buffer.duration) source.start(at, offset);
      return { source, gain: gain.gain, level: i === audible ? 1 : 0 };
    });
  }

  /** Makes another one audible, or none (−1). */
  select(audible) {
    const now = this.context.currentTime;
    this.voices.forEach((voice, i) => {
      const level = i === audible ? 1 : 0;
      if (level === voice.level) return;
      voice.gain.cancelScheduledValues(now);
      voice.gain.setValueAtTime(voice.level, now);
      voice.gain.linearRampToValueAtTime(level, now + FADE_S);
      voice.level = level;
    });
  }

  stop() {
    for (const { source } of this.voices) source.disconnect();
    this.voices = [];
  }

  /** The position in seconds. */
  get time() {
    const time = this.context.currentTime - this.began;
    if (!this.loop || time < this.loop[1]) return time;
    const [from, to] = this.loop;
    return from + ((time - from) % (to - from));
  }
}

/** The largest magnitude of the samples. */
function peak(samples) {
  return samples.reduce((most, s) => Math.max(most, Math.abs(s)), 1);
}

/**
 * Draws the range of the samples in each pixel column, around the middle of a band that `loudest` fills.
 * Louder samples are cut, so that a click does not change the scale of the rest.
 */
function drawWave(pen, samples, loudest, width, height, colour) {
  const scale = height / 2 / Math.max(loudest, 4000);
  const middle = height / 2;
  pen.fillStyle = colour;
  for (let x = 0; x < width; x++) {
    const from = Math.floor((x * samples.length) / width);
    const to = Math.max(from + 1, Math.floor(((x + 1) * samples.length) / width));
    let low = 0;
    let high = 0;
    for (let i = from; i < to; i++) {
      if (samples[i] < low) low = samples[i];
      if (samples[i] > high) high = samples[i];
    }
    const top = Math.max(0, middle - high * scale);
    const bottom = Math.min(height, middle - low * scale);
    pen.fillRect(x, top, 1, Math.max(1, bottom - top));
  }
}

/** Draws one cell per frame; cells of frames that were not played are at least one pixel wide. */
function drawFates(pen, fates, colours, width, top, height) {
  const frames = fates.reduce((sum, [, count]) => sum + count, 0);
  pen.fillStyle = ink("--cell");
  pen.fillRect(0, top, width, height);
  let at = 0;
  for (const [fate, count] of fates) {
    if (fate !== "played") {
      const x = (at / frames) * width;
      pen.fillStyle = fate === "lost" ? ink("--lost") : (colours[fate] ?? "#888888");
      pen.fillRect(x, top, Math.max(1, (count / frames) * width), height);
    }
    at += count;
  }
}

function fateAt({ fates, frame_s }, time) {
  let frame = Math.floor(time / frame_s);
  for (const [fate, count] of fates) {
    if (frame < count) return fate.replace("_", " ");
    frame -= count;
  }
  return "";
}

/** The probability of at least `correct` of `count` right answers by guessing. */
function byGuessing(correct, count) {
  let ways = 1;
  let sum = 0;
  for (let k = 0; k <= count; k++) {
    if (k >= correct) sum += ways;
    ways = (ways * (count - k)) / (k + 1);
  }
  return sum / 2 ** count;
}

class Player {
  constructor(root, { signals, colours }, recordings) {
    this.root = root;
    this.recordings = recordings;
    this.colours = colours;
    this.signals = signals.map((signal, i) => ({
      ...signal,
      ...recordings[signal.recording],
      row: root.querySelector(`[data-signal="${i}"]`),
    }));
    // All waveforms have the scale of the references, so that their loudness can be compared.
    const sent = this.signals.filter(({ samples, fates }) => samples && !fates);
    this.loudest = sent.length ? Math.max(...sent.map(({ samples }) => peak(samples))) : 32768;
    for (const name of ["play", "slider", "time", "repeat", "now", "choose", "count"])
      this[name] = root.querySelector(`[data-part=${name}]`);
    this.place = 0;
    this.buffers = new Map();
    this.playing = false;
    this.blind = null;
    this.heard = this.signals.find((signal) => signal.samples && signal.fates?.length) ?? this.signals[0];
    this.listen();
    this.choose?.querySelectorAll("input").forEach((box, i) => {
      box.checked = this.signals[i].chosen;
      box.addEventListener("change", () => this.chosen(this.signals[i], box.checked));
    });
    for (const signal of this.signals) {
      const scope = signal.row.querySelector(".scope");
      scope.addEventListener("click", (event) => this.clicked(scope, event));
      const draw = () => this.draw(signal);
      new ResizeObserver(draw).observe(scope);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
      signal.row.querySelector("input")?.addEventListener("change", () => this.switchTo(signal));
    }
    this.arrange();
    this.test = new BlindTest(this);
  }

  listen() {
    if (!this.play) return;
    this.play.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.repeat.addEventListener("change", () => this.seek(this.time_s));
    this.root.addEventListener("keydown", (event) => this.key(event));
  }

  /** The signals that play together. */
  get shown() {
    return this.blind ?? this.signals.filter((signal) => signal.chosen && signal.samples);
  }

  get duration() {
    return Math.max(0.1, ...this.shown.map(({ samples, rate }) => samples.length / rate));
  }

  get time_s() {
    return this.playing ? this.deck.time : this.place;
  }

  arrange() {
    const many = this.signals.filter((signal) => signal.chosen).length;
    for (const signal of this.signals) {
      signal.row.hidden = !signal.chosen;
      if (signal.chosen) this.draw(signal);
    }
    this.choose?.querySelectorAll("input").forEach((box) => {
      box.disabled = !box.checked && many >= MOST_SHOWN;
    });
    if (this.count) this.count.textContent = `${many} of ${this.signals.length}`;
    if (!this.shown.includes(this.heard) && this.shown.length) this.heard = this.shown[0];
    const input = this.heard?.row.querySelector("input");
    if (input) input.checked = true;
    if (!this.play) return;
    this.slider.max = this.duration;
    this.follow();
  }

  async chosen(signal, yes) {
    signal.chosen = yes;
    this.arrange();
    if (this.playing) await this.start();
  }

  toggle() {
    return this.playing ? this.pause() : this.start();
  }

  /** Starts at the present position. */
  async start() {
    const at = this.time_s >= this.duration ? 0 : this.time_s;
    // At the recordings' own rate, so that the system converts it and not each voice.
    this.context ??= new AudioContext({ sampleRate: Math.max(...this.recordings.map((r) => r.rate)) });
    this.deck ??= new Deck(this.context);
    const shown = this.shown;
    const buffers = await Promise.all(shown.map((signal) => this.buffer(this.context, signal.recording)));
    await this.context.resume();
    if (shown.some((signal, i) => signal !== this.shown[i])) return this.start();
    const length = Number(this.repeat.value);
    const whole = [0, this.duration];
    const part = [at, Math.min(at + length, this.duration)];
    const loop = length ? (length < this.duration ? part : whole) : null;
    this.deck.start(buffers, shown.indexOf(this.heard), at, loop);
    this.playing = true;
    this.play.textContent = "Pause";
    this.follow();
  }

  pause() {
    this.place = Math.min(this.time_s, this.duration);
    this.deck.stop();
    this.playing = false;
    this.play.textContent = "Play";
    this.follow();
  }

  seek(time) {
    this.place = Math.min(Math.max(time, 0), this.duration);
    if (!this.playing) return this.follow();
    this.playing = false;
    return this.start();
  }

  /** The decoded buffer of a recording, once for each context. */
  buffer(context, number) {
    if (!this.buffers.has(number) || context !== this.context) {
      // Of one length, so that all repeat at the same sample.
      const seconds = Math.max(...this.recordings.map(({ samples, rate }) => samples.length / rate));
      const decoded = context.decodeAudioData(wav(this.recordings[number], seconds));
      if (context !== this.context) return decoded;
      this.buffers.set(number, decoded);
    }
    return this.buffers.get(number);
  }

  switchTo(signal) {
    this.heard = signal;
    if (this.playing) this.deck.select(this.shown.indexOf(signal));
    const input = this.blind ? null : signal.row.querySelector("input");
    if (input) input.checked = true;
    this.follow(false);
  }

  clicked(scope, event) {
    if (!this.play) return;
    const box = scope.getBoundingClientRect();
    this.seek(((event.clientX - box.left) / box.width) * this.duration);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
    const kind = event.target.tagName;
    const own = kind === "BUTTON" || kind === "SUMMARY" || event.target.type === "checkbox";
    if (event.key === " " && !own) this.toggle();
    else if (this.test.key(event.key)) this.follow(false);
    else if (!this.blind && /^[1-9]$/.test(event.key) && this.shown[Number(event.key) - 1])
      this.switchTo(this.shown[Number(event.key) - 1]);
    else return;
    event.preventDefault();
  }

  /** Shows the position, and while playing continues to. */
  follow(again = true) {
    const time = this.time_s;
    if (this.playing && time >= this.duration) {
      this.pause();
      this.place = 0;
      return this.follow();
    }
    const share = `${(100 * time) / this.duration}%`;
    for (const signal of this.signals) signal.row.querySelector(".head").style.left = share;
    this.slider.value = time;
    const words = `${time.toFixed(1)} s`;
    this.slider.setAttribute("aria-valuetext", words);
    this.time.textContent = `${words} of ${this.duration.toFixed(1)} s`;
    const fate = this.heard.fates && this.heard.frame_s ? ` · frame ${fateAt(this.heard, time)}` : "";
    this.now.textContent = this.blind ? "" : `${this.heard.row.dataset.name}${fate}`;
    if (again && this.playing) {
      cancelAnimationFrame(this.next);
      this.next = requestAnimationFrame(() => this.follow());
    }
  }

  draw(signal) {
    const canvas = signal.row.querySelector("canvas");
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height) return;
    Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    const strip = signal.fates ? Math.round(10 * ratio) : 0;
    const share = signal.samples ? signal.samples.length / signal.rate / this.duration : 1;
    if (signal.samples) {
      const colour = signal.fates ? signal.colour : ink("--wave");
      drawWave(pen, signal.samples, this.loudest, Math.round(width * share), height - strip, colour);
    }
    if (signal.fates) drawFates(pen, signal.fates, this.colours, Math.round(width * share), height - strip, strip);
  }
}

/** A blind comparison of two signals: X is one of them, chosen at random for each trial. */
class BlindTest {
  constructor(player) {
    this.player = player;
    this.root = player.root.querySelector(".blind");
    if (!this.root) return;
    for (const name of ["a", "b", "trials", "begin", "end", "panel", "setup", "trial", "score"])
      this[name] = this.root.querySelector(`[data-blind=${name}]`);
    this.choices = [...this.root.querySelectorAll("[data-hear]")];
    this.begin.addEventListener("click", () => this.started());
    this.end.addEventListener("click", () => this.ended());
    for (const button of this.choices) button.addEventListener("click", () => this.hear(button.dataset.hear));
    for (const button of this.root.querySelectorAll("[data-answer]"))
      button.addEventListener("click", () => this.answer(button.dataset.answer));
  }

  async started() {
    const pair = [this.a, this.b].map((choice) => this.player.signals[Number(choice.value)]);
    if (pair[0] === pair[1]) {
      this.score.textContent = "A and B are the same signal: choose two.";
      return;
    }
    this.count = Number(this.trials.value);
    this.answers = [];
    this.score.textContent = "";
    this.show(true);
    if (this.player.playing) this.player.pause();
    this.player.blind = pair;
    this.player.arrange();
    this.next();
    this.hear("a");
    await this.player.start();
  }

  next() {
    this.x = crypto.getRandomValues(new Uint8Array(1))[0] % 2 ? "b" : "a";
    this.trial.textContent = `Trial ${this.answers.length + 1} of ${this.count}`;
  }

  hear(which) {
    const signal = this.player.blind["ab".indexOf(which === "x" ? this.x : which)];
    for (const button of this.choices) button.setAttribute("aria-pressed", button.dataset.hear === which);
    this.player.switchTo(signal);
  }

  answer(which) {
    this.answers.push(which === this.x);
    if (this.answers.length === this.count) return this.ended();
    this.next();
    return this.hear("x");
  }

  ended() {
    const count = this.answers.length;
    const correct = this.answers.filter(Boolean).length;
    const [a, b] = this.player.blind.map((signal) => signal.row.dataset.name);
    const early = count < this.count ? ` (ended before ${this.count})` : "";
    this.score.textContent = count
      ? `${a} and ${b}: ${correct} of ${count} correct${early}. Guessing gives at least as many with p = ${byGuessing(correct, count).toPrecision(2)}.`
      : "";
    if (this.player.playing) this.player.pause();
    this.player.blind = null;
    this.show(false);
    this.player.arrange();
    this.begin.focus();
  }

  show(running) {
    this.panel.hidden = !running;
    this.setup.hidden = running;
    this.player.root.classList.toggle("testing", running);
    if (running) this.choices[0].focus();
  }

  /** Keys of a running test. Returns whether it was one of them. */
  key(key) {
    if (!this.player.blind || !["a", "b", "x"].includes(key)) return false;
    this.hear(key);
    return true;
  }
}

function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...inside.flat().filter((part) => part !== null && part !== undefined && part !== ""));
  return made;
}

const quiet = (...words) => element("span", { class: "quiet" }, ...words);

/** The name, the score and the remarks of a signal. */
function about(signal) {
  if (!signal.fates) return [element("b", {}, signal.name)];
  const { title, subtitle, over, score, rank, notes = [] } = signal;
  const facts = score && element("span", { class: "facts" }, `${score.label} `,
    element("b", { class: score.outside ? "mos outside" : "mos" }, score.text),
    score.outside ? quiet(` outside the range of ${score.outside}`) : "");
  return [
    element("b", { class: "name", style: `--flow:${signal.colour}` }, title), " ",
    quiet([subtitle, over].filter(Boolean).join(", ")),
    facts,
    rank ? element("small", {}, element("b", {}, rank[0].toUpperCase() + rank.slice(1))) : "",
    ...[...notes, signal.silence].filter(Boolean).map((words) => element("small", {}, words)),
  ];
}

function row(signal, number, checked) {
  const silent = signal.recording === null || signal.recording === undefined;
  const inside = about(signal);
  const choice = silent
    ? element("p", {}, inside)
    : element("label", {}, element("input", { type: "radio", name: "signal", checked }), element("span", {}, inside));
  const shown = [silent ? "" : "waveform", signal.fates ? "state of each frame" : ""].filter(Boolean).join(", ");
  return element("li", { class: "signal", "data-signal": number, "data-name": signal.name },
    element("div", { class: "about" }, choice),
    element("div", { class: silent ? "scope silent" : "scope" },
      element("canvas", { role: "img", "aria-label": `${signal.name}: ${shown}` }), element("i", { class: "head" })));
}

const button = (words, attributes) => element("button", { type: "button", ...attributes }, words);

/** The blind test; at first it compares the last signal with the one before. */
function blind(heard) {
  const choose = (name, chosen) => element("select", { [`data-blind`]: name },
    heard.map(([number, signal], i) => element("option", { value: number, selected: i === chosen }, signal.name)));
  const calls = heard.filter(([, signal]) => signal.fates).length;
  const first = heard.length - calls;
  const second = Math.min(first + 1, heard.length - 1);
  const trials = [8, 12, 16, 24].map((count) => element("option", { selected: count === 12 }, String(count)));
  return element("details", { class: "blind" }, element("summary", {}, "Blind test (A/B/X)"),
    element("p", { class: "quiet" }, "X is A or B, chosen at random in each trial. Listen as often as you like, then say which one it is. The score is shown at the end."),
    element("div", { class: "controls", "data-blind": "setup" },
      element("label", {}, "A ", choose("a", second - 1)), element("label", {}, "B ", choose("b", second)),
      element("label", {}, "trials ", element("select", { "data-blind": "trials" }, trials)),
      button("Start", { "data-blind": "begin" })),
    element("div", { "data-blind": "panel", hidden: true },
      element("p", { "data-blind": "trial", role: "status" }),
      element("div", { class: "controls" },
        ["a", "b", "x"].map((one) => button(`Hear ${one.toUpperCase()}`, { "data-hear": one, "aria-pressed": "false" })),
        button("X is A", { "data-answer": "a" }), button("X is B", { "data-answer": "b" }), button("End", { "data-blind": "end" })),
      element("p", { class: "quiet" }, "Keys: a, b and x.")),
    element("p", { "data-blind": "score", role: "status" }));
}

/** The elements of a player. */
function markup({ signals, colours }) {
  const heard = [...signals.entries()].filter(([, { recording }]) => recording !== null && recording !== undefined);
  const there = new Set(signals.flatMap(({ fates = [] }) => fates.map(([fate]) => fate)));
  const key = Object.entries(colours).filter(([fate]) => there.has(fate)).map(([fate, colour]) =>
    element("li", {}, element("i", { style: `background:${fate === "lost" ? "var(--lost)" : colour}` }), fate.replaceAll("_", " ")));
  const first = heard.find(([, signal]) => !signal.fates)?.[0];
  const repeats = [[0, "off"], [2, "2 s from here"], [5, "5 s from here"], [1000000, "all"]];
  const boxes = signals.map((signal) => element("label", {},
    element("input", { type: "checkbox", "aria-label": `show ${signal.name}` }), ` ${signal.name}`,
    signal.silence ? quiet(" (no audio)") : ""));
  const root = element("div", { class: "player", role: "group", "aria-label": "Player" },
    heard.length ? element("p", { class: "lead" }, "Select a signal while it plays: playback continues at the same sample. The strip below a waveform has one cell per voice frame.") : "",
    element("ul", { class: "key" }, key),
    signals.length > 2 ? element("details", { class: "choice-of" },
      element("summary", {}, "Signals: ", element("span", { "data-part": "count" })),
      element("fieldset", { "data-part": "choose" }, element("legend", { class: "quiet" }, "Up to eight are shown and play together."), boxes)) : "",
    heard.length ? [
      element("div", { class: "controls" }, button("Play", { "data-part": "play" }),
        element("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0, "data-part": "slider", "aria-label": "position" }),
        element("output", { "data-part": "time", "aria-live": "off" }, "0.0 s"),
        element("label", {}, "repeat ", element("select", { "data-part": "repeat" }, repeats.map(([value, words]) => element("option", { value }, words))))),
      element("p", { class: "now", "data-part": "now", "aria-live": "off" }, "\u00a0"),
    ] : "",
    element("ol", { class: "signals" }, signals.map((signal, number) => row(signal, number, number === first))),
    heard.length ? [
      element("p", { class: "quiet keys" }, "Keys: Space plays and pauses, 1 to 9 select a signal, arrow keys move the slider or the selection."),
      blind(heard),
    ] : "");
  return root;
}

class PlayerElement extends HTMLElement {
  async connectedCallback() {
    const packed = document.getElementById("player");
    if (packed && !this.firstChild) await this.show(JSON.parse(packed.textContent));
    document.documentElement.dataset.players = "ready";
  }

  disconnectedCallback() {
    if (this.player?.playing) this.player.pause();
  }

  async show(data) {
    this.disconnectedCallback();
    const root = markup(data);
    this.replaceChildren(root);
    try {
      root.player = this.player = new Player(root, data, await unpacked(data));
      root.player.Deck = Deck;
    } catch (error) {
      const place = root.querySelector("[data-part=now]") ?? root;
      place.textContent = `This browser cannot play the recordings (${error.message}).`;
    }
  }
}

customElements.define("talkspurt-player", PlayerElement);
