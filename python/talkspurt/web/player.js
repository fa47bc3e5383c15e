// The players: two recordings of one call with a common playback position, and their waveforms.
// The page contains each recording once, as base64 in #wavs; it is converted to a Blob and samples here.

const wavs = JSON.parse(document.getElementById("wavs").textContent);
const fateColours = JSON.parse(document.getElementById("fate-colours").textContent);
const HEADER_BYTES = 44; // RIFF, fmt and data headers of a plain PCM WAV
const sounds = new Map();

function sound(key) {
  if (!sounds.has(key)) {
    const text = atob(wavs[key]);
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const samples = new Int16Array(bytes.buffer, HEADER_BYTES);
    const url = URL.createObjectURL(new Blob([bytes], { type: "audio/wav" }));
    sounds.set(key, { url, samples });
  }
  return sounds.get(key);
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Draws the range of the samples in each pixel column, around the middle of a band. */
function drawWave(pen, samples, width, top, height, colour) {
  const middle = top + height / 2;
  const loudest = samples.reduce((most, s) => Math.max(most, Math.abs(s)), 1);
  const scale = height / 2 / Math.max(loudest, 4000);
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
    pen.fillRect(x, middle - high * scale, 1, Math.max(1, (high - low) * scale));
  }
}

/** Fits a canvas to the pixels of the screen. Returns its pen, width and height, or null if it is hidden. */
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (!width || !height) return null;
  canvas.width = width;
  canvas.height = height;
  return { pen: canvas.getContext("2d"), width, height, ratio };
}

/** Redraws when the canvas changes its width or the colour scheme changes. */
function keepDrawn(canvas, draw) {
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

/** Draws one cell per frame; cells of frames that were not played are at least one pixel wide. */
function drawFates(pen, call, width, top, height) {
  const frames = call.fates.reduce((sum, [, count]) => sum + count, 0);
  pen.fillStyle = ink("--cell");
  pen.fillRect(0, top, width, height);
  let at = 0;
  for (const [fate, count] of call.fates) {
    if (fate !== "played") {
      const x = (at / frames) * width;
      pen.fillStyle = fate === "lost" ? ink("--lost") : (fateColours[fate] ?? "#888888");
      pen.fillRect(x, top, Math.max(1, (count / frames) * width), height);
    }
    at += count;
  }
}

function fateAt(call, time) {
  let frame = Math.floor(time / call.frame_s);
  for (const [fate, count] of call.fates) {
    if (frame < count) return fate;
    frame -= count;
  }
  return "";
}

class Player {
  constructor(root) {
    this.call = JSON.parse(root.dataset.call);
    this.sounds = [sound(root.dataset.sent), sound(root.dataset.received)];
    this.audios = [...root.querySelectorAll("audio")];
    this.canvas = root.querySelector("canvas");
    this.head = root.querySelector(".head");
    this.now = root.querySelector(".now");
    this.place = 0;
    this.audios.forEach((audio, side) => {
      audio.src = this.sounds[side].url;
      audio.addEventListener("play", () => this.started(audio));
      audio.addEventListener("seeked", () => this.moved(audio));
    });
    root.querySelector(".scope").addEventListener("click", (event) => this.clicked(event));
    keepDrawn(this.canvas, () => this.draw());
  }

  /** One side starts: all other audio on the page pauses, and playback continues at the common position. */
  started(audio) {
    for (const other of document.querySelectorAll("audio")) if (other !== audio) other.pause();
    const other = this.audios.find((a) => a !== audio);
    if (audio.currentTime < 0.05 && other.currentTime > 0.05 && !other.ended) {
      audio.currentTime = other.currentTime;
    }
    this.active = audio;
    this.follow();
  }

  moved(audio) {
    if (audio.paused) this.show(audio);
    const other = this.audios.find((a) => a !== audio);
    if (other.paused && Math.abs(other.currentTime - audio.currentTime) > 0.02) {
      other.currentTime = audio.currentTime;
    }
  }

  follow() {
    this.show(this.active);
    const other = this.audios.find((a) => a !== this.active);
    if (!this.active.paused) requestAnimationFrame(() => this.follow());
    else if (other.paused) other.currentTime = this.active.ended ? 0 : this.active.currentTime;
  }

  clicked(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const audio = this.active ?? this.audios[1];
    audio.currentTime = share * audio.duration;
    this.show(audio);
  }

  show(audio) {
    const share = audio.duration ? audio.currentTime / audio.duration : 0;
    this.head.style.left = `${share * 100}%`;
    this.head.classList.add("on");
    const side = audio === this.audios[0] ? "reference" : "degraded";
    const fate = fateAt(this.call, audio.currentTime).replace("_", " ");
    this.now.textContent = `${side} · ${audio.currentTime.toFixed(1)} s · frame ${fate}`;
  }

  draw() {
    const sheet = fitted(this.canvas);
    if (!sheet) return;
    const { pen, width, height, ratio } = sheet;
    const strip = Math.round(14 * ratio);
    const band = (height - strip) / 2;
    drawWave(pen, this.sounds[0].samples, width, 0, band, ink("--wave"));
    drawFates(pen, this.call, width, band, strip);
    drawWave(pen, this.sounds[1].samples, width, band + strip, band, this.call.colour);
  }
}

for (const root of document.querySelectorAll(".player")) new Player(root);
for (const root of document.querySelectorAll(".strip")) {
  const canvas = root.querySelector("canvas");
  const call = JSON.parse(root.dataset.call);
  keepDrawn(canvas, () => {
    const sheet = fitted(canvas);
    if (sheet) drawFates(sheet.pen, call, sheet.width, 0, sheet.height);
  });
}
document.documentElement.dataset.players = "ready";
