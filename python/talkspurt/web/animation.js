// The packets of a stretch of the run, moving: what waits stands as a stack beside its link, what is
// on its way is a bar as long as its transmission lasts, what is dropped falls. Everything shown is
// a function of one instant, so that the slider, the buttons and the clock all end in `show`.
// The rows come as columns in base64 in #animation, in order of arrival at the link; times are ticks
// since the first.

const data = JSON.parse(document.getElementById("animation").textContent);
const NEVER = 2 ** 32 - 1;
const SPEEDS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5];
const FALL_S = 0.9; // as the reader's clock goes
const STEPS = 2000; // of the slider
const SMALL_BYTES = 100; // acknowledgements and the like are thinner
const THICK = { lane: [3, 6], stack: [7, 13] };
const ASIDE = { lane: 4.5, stack: 10 }; // from the middle of the link
const stage = document.querySelector(".stage");

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function column(text, Kind) {
  return new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

const rows = data && {
  flow: column(data.flow, Uint16Array),
  link: column(data.link, Uint16Array),
  bytes: column(data.bytes, Uint32Array),
  enqueued: column(data.enqueued, Uint32Array),
  dequeued: column(data.dequeued, Uint32Array),
  ended: column(data.ended, Uint32Array),
  fate: column(data.fate, Uint8Array),
};
const count = data ? rows.flow.length : 0;
const toTicks = (seconds) => (seconds * 1e9 - data.base_ns) / data.tick_ns;
const toSeconds = (ticks) => (data.base_ns + ticks * data.tick_ns) / 1e9;
const dropped = (i) => data.fates[rows.fate[i]] !== "received" && rows.ended[i] !== NEVER;

/** Whether packet `i` waits, flies or is gone at `t`: by the instants the run gave it, no more. */
const waits = (i, t) => rows.enqueued[i] <= t && t < rows.dequeued[i] && t < rows.ended[i];
const flies = (i, t) => rows.dequeued[i] <= t && t < rows.ended[i];

/** A lane: its corners moved beside the link, with the way to each, and the place of its queue. */
function laneOf(place) {
  const lane = { ...place, ways: [0], most: 1 };
  const { points } = place;
  for (let i = 1; i < points.length; i++) {
    lane.ways.push(lane.ways[i - 1] + Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]));
  }
  lane.length = lane.ways.at(-1);
  lane.queueAt = at(lane, lane.stack);
  return lane;
}

/** The point of a link's middle so far along, and the direction there. */
function at(lane, way) {
  let i = 1;
  while (i < lane.ways.length - 1 && lane.ways[i] < way) i++;
  const [ax, ay] = lane.points[i - 1];
  const [bx, by] = lane.points[i];
  const length = lane.ways[i] - lane.ways[i - 1] || 1;
  const [ux, uy] = [(bx - ax) / length, (by - ay) / length];
  const on = way - lane.ways[i - 1];
  return { x: ax + ux * on, y: ay + uy * on, ux, uy };
}

/** Moved aside, to the left of the way: both directions of a link have their own side. */
function aside({ x, y, ux, uy }, by) {
  return [x + uy * by, y - ux * by];
}

function makeStage() {
  const canvas = stage.querySelector("canvas");
  const grounds = [...stage.querySelectorAll(".ground-of")];
  const parts = Object.fromEntries([...stage.querySelectorAll("[data-part]")].map((e) => [e.dataset.part, e]));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const lanes = data.lanes.map((place) => (place.points ? laneOf(place) : null));
  const laneOfLink = data.links.map((link) => lanes[link.lane]);
  const [start, end] = [toTicks(data.from), toTicks(data.to)];
  const sending = Float64Array.from(rows.bytes, (bytes, i) => ticksToSend(i, bytes));
  const flows = data.flows;
  const colours = [...new Set(flows.map((flow) => flow.colour))];
  const colourOf = flows.map((flow) => colours.indexOf(flow.colour));
  const state = { t: start, world: 0, speed: 1, playing: false, drops: [], waiting: 0, flying: 0 };

  function ticksToSend(i, bytes) {
    const { rate_bps } = data.links[rows.link[i]];
    const ticks = rate_bps ? (bytes * 8 * 1e9) / rate_bps / data.tick_ns : 0;
    return rows.dequeued[i] === NEVER || rows.ended[i] === NEVER || dropped(i) ? ticks : Math.min(ticks, rows.ended[i] - rows.dequeued[i]);
  }

  /** How far along its link a packet's two ends are, 0 to 1. */
  function ends(i, t) {
    const delay = (data.links[rows.link[i]].delay_s * 1e9) / data.tick_ns;
    const arrived = rows.ended[i] !== NEVER && !dropped(i);
    const travel = Math.max(arrived ? rows.ended[i] - rows.dequeued[i] - sending[i] : delay, 1e-9);
    const gone = t - rows.dequeued[i];
    const share = (ticks) => Math.min(Math.max(ticks / travel, 0), 1);
    return [share(gone - sending[i]), share(gone)];
  }

  // What waits longest in a lane sets how high one packet stands there.
  function measureQueues() {
    const changes = [];
    for (let i = 0; i < count; i++) {
      const until = Math.min(rows.dequeued[i], rows.ended[i]);
      if (until > rows.enqueued[i]) changes.push([rows.enqueued[i], 1, rows.link[i]], [until, -1, rows.link[i]]);
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const length = new Map(lanes.map((lane) => [lane, 0]));
    for (const [, by, link] of changes) {
      const lane = laneOfLink[link];
      length.set(lane, length.get(lane) + by);
      lane.most = Math.max(lane.most, length.get(lane));
    }
    for (const lane of lanes) if (lane) lane.step = Math.min(4, data.room / lane.most);
    return changes;
  }
  const changes = measureQueues();

  function fit() {
    const ratio = window.devicePixelRatio || 1;
    const box = grounds[state.world].querySelector("svg");
    const [left, top, width] = box.getAttribute("viewBox").split(" ").map(Number);
    canvas.width = Math.round(box.clientWidth * ratio);
    canvas.height = Math.round(box.clientHeight * ratio);
    const scale = canvas.width / width;
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
    state.ground = { left, top, width, height: canvas.height / scale };
    return pen;
  }

  function paint() {
    const { left, top, width, height } = state.ground;
    const { t } = state;
    const pen = canvas.getContext("2d");
    pen.clearRect(left, top, width, height);
    const bars = colours.map(() => [[], []]);
    const falling = [];
    const fall = (FALL_S * state.speed * 1e9) / data.tick_ns;
    for (const lane of lanes) if (lane) lane.waiting = 0;
    state.waiting = state.flying = 0;
    for (let i = 0; i < count && rows.enqueued[i] <= t; i++) {
      const lane = laneOfLink[rows.link[i]];
      if (lane.world !== state.world) continue;
      if (waits(i, t)) stack(i, lane, bars);
      else if (flies(i, t)) fly(i, t, lane, bars);
      else if (dropped(i) && rows.ended[i] <= t && t < rows.ended[i] + fall) falling.push(i);
    }
    pen.lineCap = "butt";
    bars.forEach((both, colour) => both.forEach((lines) => stroke(pen, lines, colours[colour])));
    for (const lane of lanes) if (lane && lane.world === state.world && lane.waiting) label(pen, lane);
    for (const i of falling) drop(pen, i, (t - rows.ended[i]) / fall);
  }

  const thickness = (i) => (rows.bytes[i] > SMALL_BYTES ? 1 : 0);

  function stack(i, lane, bars) {
    const half = THICK.stack[thickness(i)] / 2;
    const from = ASIDE.stack + lane.waiting * lane.step;
    const [x, y] = aside(lane.queueAt, from + lane.step / 2);
    const { ux, uy } = lane.queueAt;
    const high = lane.step > 1.5 ? lane.step - 0.7 : lane.step;
    bars[colourOf[rows.flow[i]]][0].push({ high, line: [x - ux * half, y - uy * half, x + ux * half, y + uy * half] });
    lane.waiting++;
    state.waiting++;
  }

  function fly(i, t, lane, bars) {
    let [tail, head] = ends(i, t).map((share) => share * lane.length);
    if (head - tail > 2) tail += 0.8; // a gap to the packet behind
    if (head - tail < 2) [tail, head] = [Math.max(0, head - 2), Math.max(head, 2)];
    const line = [...aside(at(lane, tail), ASIDE.lane)];
    lane.ways.forEach((way, k) => {
      if (way > tail && way < head) line.push(...aside({ ...at(lane, way), x: lane.points[k][0], y: lane.points[k][1] }, ASIDE.lane));
    });
    line.push(...aside(at(lane, head), ASIDE.lane));
    bars[colourOf[rows.flow[i]]][1].push({ high: THICK.lane[thickness(i)], line });
    state.flying++;
  }

  function stroke(pen, lines, colour) {
    pen.strokeStyle = colour;
    lines.sort((a, b) => a.high - b.high);
    for (let i = 0; i < lines.length; ) {
      pen.lineWidth = lines[i].high;
      pen.beginPath();
      for (const { high } = lines[i]; i < lines.length && lines[i].high === high; i++) {
        const { line } = lines[i];
        pen.moveTo(line[0], line[1]);
        for (let k = 2; k < line.length; k += 2) pen.lineTo(line[k], line[k + 1]);
      }
      pen.stroke();
    }
  }

  function label(pen, lane) {
    const [x, y] = aside(lane.queueAt, ASIDE.stack + lane.waiting * lane.step + 11);
    pen.fillStyle = ink("--ink");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(lane.waiting, x, y);
  }

  /** A dropped packet: a cross where it was lost, and the packet falling from there. */
  function drop(pen, i, share) {
    const lane = laneOfLink[rows.link[i]];
    const flew = rows.dequeued[i] <= rows.ended[i];
    const middle = flew ? at(lane, ends(i, rows.ended[i])[1] * lane.length) : lane.queueAt;
    const [x, y] = aside(middle, flew ? ASIDE.lane : ASIDE.stack + (lane.waiting + 0.5) * lane.step);
    pen.globalAlpha = 1 - share ** 2;
    pen.strokeStyle = ink("--bad");
    pen.lineWidth = 1.8;
    pen.beginPath();
    for (const by of [-1, 1]) {
      pen.moveTo(x - 5, y - 5 * by);
      pen.lineTo(x + 5, y + 5 * by);
    }
    pen.stroke();
    pen.fillStyle = colours[colourOf[rows.flow[i]]];
    if (!calm.matches) pen.fillRect(x - 5 + share * 9, y - 2 + 95 * share ** 2, 10, 4);
    pen.globalAlpha = 1;
  }

  /** Under the slider: how many packets wait in this network, and where packets are dropped. */
  function paintCourse() {
    const { course } = parts;
    const ratio = window.devicePixelRatio || 1;
    const width = (course.width = Math.round(course.clientWidth * ratio));
    const height = (course.height = Math.round(course.clientHeight * ratio));
    const pen = course.getContext("2d");
    const most = new Float64Array(width + 1);
    let [x, length] = [0, 0];
    for (const [time, by, link] of changes) {
      if (laneOfLink[link].world !== state.world) continue;
      const to = Math.min(Math.max(Math.floor(((time - start) / (end - start)) * width), 0), width);
      while (x < to) most[++x] = length;
      length += by;
      most[x] = Math.max(most[x], length);
    }
    while (x < width) most[++x] = length;
    const peak = Math.max(1, ...most);
    pen.fillStyle = ink("--cell");
    most.forEach((value, px) => pen.fillRect(px, height * (1 - (0.85 * value) / peak), 1, height));
    pen.fillStyle = ink("--bad");
    for (const i of state.drops) pen.fillRect(Math.floor(((rows.ended[i] - start) / (end - start)) * width), 0, ratio, height * 0.4);
  }

  function show(ticks) {
    state.t = Math.min(Math.max(ticks, start), end);
    paint();
    const digits = Math.min(6, Math.max(2, 2 - Math.round(Math.log10(state.speed))));
    const lost = state.drops.filter((i) => rows.ended[i] <= state.t).length;
    const words = `${toSeconds(state.t).toFixed(digits)} s`;
    parts.time.textContent = words;
    parts.now.textContent = `${state.waiting} waiting, ${state.flying} on their way, ${lost} of ${state.drops.length} dropped`;
    parts.slider.value = Math.round(((state.t - start) / (end - start)) * STEPS);
    parts.slider.setAttribute("aria-valuetext", words);
  }

  let before = null;
  function tick(clock) {
    if (!state.playing) return;
    if (before !== null) show(state.t + ((clock - before) / 1000) * state.speed * (1e9 / data.tick_ns));
    before = clock;
    if (state.t >= end) play(false);
    else requestAnimationFrame(tick);
  }

  function play(on) {
    state.playing = on;
    parts.play.textContent = on ? "Pause" : "Play";
    before = null;
    if (!on) return;
    if (state.t >= end) show(start);
    requestAnimationFrame(tick);
  }

  /** To the next drop, or to the one before; there time stands still. */
  function step(by) {
    play(false);
    const times = state.drops.map((i) => rows.ended[i]);
    const there = by > 0 ? times.find((time) => time > state.t) : times.findLast((time) => time < state.t);
    if (there !== undefined) show(there);
  }

  function legend() {
    const seen = new Set();
    for (let i = 0; i < count; i++) if (laneOfLink[rows.link[i]].world === state.world) seen.add(rows.flow[i]);
    const named = colours.map((colour) => [colour, [...seen].filter((flow) => flows[flow].colour === colour)]);
    parts.legend.replaceChildren(
      ...named.filter(([, those]) => those.length).map(([colour, those]) => {
        const item = document.createElement("li");
        const box = document.createElement("i");
        box.style.background = colour;
        const names = those.sort((a, b) => a - b).map((flow) => flows[flow].name);
        item.append(box, names.length > 4 ? `${names.length} flows: ${names[0]} … ${names.at(-1)}` : names.join(", "));
        return item;
      }),
    );
  }

  /** The fastest at which those seen on their way, at any instant, need a second for it in the mean. */
  function calmSpeed() {
    let [sum, squares] = [0, 0];
    for (let i = 0; i < count; i++) {
      if (laneOfLink[rows.link[i]].world !== state.world || rows.ended[i] === NEVER || dropped(i)) continue;
      const time = ((rows.ended[i] - rows.dequeued[i]) * data.tick_ns) / 1e9;
      sum += time;
      squares += time * time;
    }
    return SPEEDS.find((speed) => squares / sum / speed >= 1) ?? (sum ? SPEEDS.at(-1) : 1);
  }

  function choose(world) {
    state.world = world;
    grounds.forEach((ground, i) => (ground.hidden = i !== world));
    const ours = (i) => laneOfLink[rows.link[i]].world === world;
    const within = (i) => rows.ended[i] >= start && rows.ended[i] < end;
    state.drops = [...rows.flow.keys()].filter((i) => dropped(i) && ours(i) && within(i)).sort((a, b) => rows.ended[a] - rows.ended[b]);
    for (const button of [parts.before, parts.next]) button.disabled = !state.drops.length;
    state.speed = calmSpeed();
    parts.speed.value = state.speed;
    legend();
    redraw();
  }

  function redraw() {
    fit();
    paintCourse();
    show(state.t);
  }

  function keys(event) {
    const held = event.target.closest("button, select");
    const acts = { " ": () => play(!state.playing), n: () => step(1), p: () => step(-1) };
    const act = acts[event.key];
    if (!act || (held && event.key === " ") || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  parts.speed.append(...SPEEDS.map((speed) => new Option(speed === 1 ? "real time" : `1/${Math.round(1 / speed)}`, speed)));
  parts.play.addEventListener("click", () => play(!state.playing));
  parts.next.addEventListener("click", () => step(1));
  parts.before.addEventListener("click", () => step(-1));
  parts.slider.addEventListener("input", () => show(start + (parts.slider.value / STEPS) * (end - start)));
  parts.speed.addEventListener("change", () => {
    state.speed = Number(parts.speed.value);
    show(state.t);
  });
  parts.world?.addEventListener("change", () => choose(Number(parts.world.value)));
  stage.addEventListener("keydown", keys);
  stage.hidden = false;
  parts.slider.max = STEPS;
  choose(Number(parts.world?.value ?? 0));
  if (state.drops.length) show(rows.ended[state.drops[0]]);
  new ResizeObserver(redraw).observe(stage);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  /** What stands where at an instant, for whoever asks the page: the tests do. */
  stage.animation = {
    rows: count,
    from: data.from,
    to: data.to,
    show: (seconds) => show(toTicks(seconds)),
    time: () => toSeconds(state.t),
    drops: () => state.drops.map((i) => toSeconds(rows.ended[i])),
    on(link, seconds) {
      const [t, which] = [toTicks(seconds), data.links.findIndex(({ name }) => name === link)];
      const ours = [...rows.link.keys()].filter((i) => rows.link[i] === which);
      return { waiting: ours.filter((i) => waits(i, t)).length, flying: ours.filter((i) => flies(i, t)).length };
    },
    paint,
  };
}

if (stage) makeStage();
document.documentElement.dataset.animation = "ready";
