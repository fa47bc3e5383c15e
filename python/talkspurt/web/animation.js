// Animates the packets of an interval of a run, as an element of any page: <talkspurt-packets>, with report.css,
// topology.css and animation.css. Waiting packets form a stack next to their link, a packet in transit is a bar whose
// length is its transmission time, and a dropped packet falls. The picture is a function of one instant, so that the
// slider, the buttons and the clock all call `show`.
//
// Its method `show` takes, and without a call of it the script element with the id "animation" contains, the JSON of
// crates/view's animation: rows as base64 columns, ordered by arrival at the link, with times in ticks since the first
// row; and worlds [{ words, ground: SVG }], of which `first` is shown first.

const NEVER = 2 ** 32 - 1;
const SPEEDS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5];
const FALL_S = 0.9; // in real time
const STEPS = 2000; // of the slider
const SMALL_BYTES = 100; // acknowledgements and other small packets are thinner
const THICK = { lane: [3, 6], stack: [7, 13] };
const ASIDE = { lane: 4.5, stack: 10, drop: 15 }; // from the middle of the link; for a drop, from the middle of its stack

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function column(text, Kind) {
  return new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** The picture, the timeline and the controls. The grounds are made by crates/view, which escapes all names. */
function markup({ worlds, first }) {
  const button = (part, words, title) => element("button", { type: "button", "data-part": part, ...(title ? { title } : {}) }, words);
  const grounds = worlds.map(({ ground }) => {
    const made = element("div", { class: "ground-of", hidden: "" });
    made.innerHTML = ground;
    return made;
  });
  const names = worlds.map(({ words }, number) => new Option(words, number, number === first, number === first));
  const figure = element("figure", { class: "stage" },
    ...(worlds.length > 1 ? [element("label", { class: "choice" }, "network ", element("select", { "data-part": "world" }, ...names))] : []),
    element("div", { class: "wide", role: "region", "aria-label": "Packet animation", tabindex: "0" },
      element("div", { class: "moving" }, ...grounds,
        element("canvas", { role: "img", "aria-label": "Packets in transit, waiting and dropped at the time of the slider" }))),
    element("canvas", { class: "course", "data-part": "course", "aria-hidden": "true", title: "waiting packets over the interval; ticks are drops" }),
    element("input", { type: "range", min: 0, value: 0, "data-part": "slider", "aria-label": "time" }),
    element("div", { class: "controls" }, button("play", "Play"),
      element("label", {}, "speed ", element("select", { "data-part": "speed" })),
      button("before", "Previous drop", "key p"), button("next", "Next drop", "key n"),
      element("output", { "data-part": "time", "aria-live": "off" }), element("span", { class: "quiet", "data-part": "now" })),
    element("ul", { class: "key", "data-part": "legend" }),
    element("p", { class: "quiet" }, "Keys: Space plays and pauses, n and p go to the next and the previous drop, arrow keys on the slider move by 1/2000 of the interval."));
  return figure;
}

/** Moves the packets in the markup of the same data. Returns how to use it from elsewhere, and how to end it. */
function animated(stage, data) {
  const rows = {
    flow: column(data.flow, Uint16Array),
    link: column(data.link, Uint16Array),
    bytes: column(data.bytes, Uint32Array),
    enqueued: column(data.enqueued, Uint32Array),
    dequeued: column(data.dequeued, Uint32Array),
    ended: column(data.ended, Uint32Array),
    fate: column(data.fate, Uint8Array),
  };
  const count = rows.flow.length;
  // Decimal fractions of a second are no binary ones: rounded, so that an instant that was read is found again.
  const toTicks = (seconds) => Math.round((1e3 * (seconds * 1e9 - data.base_ns)) / data.tick_ns) / 1e3;
  const toSeconds = (ticks) => (data.base_ns + ticks * data.tick_ns) / 1e9;
  const dropped = (i) => data.fates[rows.fate[i]] !== "received" && rows.ended[i] !== NEVER;

  /** Whether packet `i` waits or is in transit at `t`, by the recorded instants only. */
  const waits = (i, t) => rows.enqueued[i] <= t && t < rows.dequeued[i] && t < rows.ended[i];
  const flies = (i, t) => rows.dequeued[i] <= t && t < rows.ended[i];

  /** A lane: the corners of a link with the distance to each, and the packets currently on it. */
  function laneOf(place) {
    const { points } = place;
    const ways = [0];
    for (let i = 1; i < points.length; i++) {
      ways.push(ways[i - 1] + Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]));
    }
    return { ...place, ways, length: ways.at(-1), most: 1, queue: [], flying: [] };
  }

  /** The index of the straight part of a lane at a distance from its start. */
  function partOf(lane, way) {
    let part = 0;
    while (part < lane.points.length - 2 && lane.ways[part + 1] < way) part++;
    return part;
  }

  const canvas = stage.querySelector("canvas");
  const pen = canvas.getContext("2d");
  const grounds = [...stage.querySelectorAll(".ground-of")];
  const parts = Object.fromEntries([...stage.querySelectorAll("[data-part]")].map((e) => [e.dataset.part, e]));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const lanes = data.lanes.map((place) => (place.points ? laneOf(place) : null));
  const laneOfLink = data.links.map((link) => lanes[link.lane]);
  const stackOfLink = data.links.map((link) => lanes[link.stack]); // where its queue is drawn
  const [start, end] = [toTicks(data.from), toTicks(data.to)];
  const sending = Float64Array.from(rows.bytes, (bytes, i) => ticksToSend(i, bytes));
  const flows = data.flows;
  const colours = [...new Set(flows.map((flow) => flow.colour))];
  const colourOf = flows.map((flow) => flow.colour);
  const state = { t: start, world: 0, speed: 1, playing: false, drops: [] };

  /** Whether the recorded instants give the time in transit, also on a radio channel until the packet was abandoned. */
  function timed(i) {
    const still = rows.dequeued[i] === NEVER || rows.ended[i] === NEVER;
    return !still && (!dropped(i) || data.links[rows.link[i]].delay_s === 0);
  }

  function ticksToSend(i, bytes) {
    const { rate_bps } = data.links[rows.link[i]];
    const ticks = rate_bps ? (bytes * 8 * 1e9) / rate_bps / data.tick_ns : 0;
    return timed(i) ? Math.min(ticks, rows.ended[i] - rows.dequeued[i]) : ticks;
  }

  /** The positions of a packet's two ends on its link, 0 to 1. */
  function ends(i, t) {
    const delay = (data.links[rows.link[i]].delay_s * 1e9) / data.tick_ns;
    const travel = Math.max(timed(i) ? rows.ended[i] - rows.dequeued[i] - sending[i] : delay, 1e-9);
    const gone = t - rows.dequeued[i];
    const share = (ticks) => Math.min(Math.max(ticks / travel, 0), 1);
    return [share(gone - sending[i]), share(gone)];
  }

  // The longest queue of a lane determines the height of one packet in it.
  function measureQueues() {
    const changes = [];
    for (let i = 0; i < count; i++) {
      const until = Math.min(rows.dequeued[i], rows.ended[i]);
      if (until > rows.enqueued[i]) changes.push([rows.enqueued[i], 1, rows.link[i]], [until, -1, rows.link[i]]);
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const length = new Map(lanes.map((lane) => [lane, 0]));
    for (const [, by, link] of changes) {
      const lane = stackOfLink[link];
      length.set(lane, length.get(lane) + by);
      lane.most = Math.max(lane.most, length.get(lane));
    }
    for (const lane of lanes) if (lane) lane.step = Math.min(data.step, data.room / lane.most);
    return changes;
  }
  const changes = measureQueues();

  function fit() {
    const ratio = window.devicePixelRatio || 1;
    const ground = grounds[state.world].querySelector("svg");
    const [left, top, width] = ground.getAttribute("viewBox").split(" ").map(Number);
    const box = ground.getBoundingClientRect();
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const scale = canvas.width / width;
    state.place = [scale, 0, 0, scale, -left * scale, -top * scale];
  }

  /** Aligns the pen with a straight part of a lane: x is the distance, and up is to the left of the lane. */
  function along(lane, part) {
    const [[ax, ay], [bx, by]] = lane.points.slice(part, part + 2);
    pen.setTransform(...state.place);
    pen.translate(ax, ay);
    pen.rotate(Math.atan2(by - ay, bx - ax));
    pen.translate(-lane.ways[part], 0);
  }

  function paint() {
    const { t } = state;
    const falling = [];
    const fall = (FALL_S * state.speed * 1e9) / data.tick_ns;
    const ours = lanes.filter((lane) => lane?.world === state.world);
    for (const lane of ours) lane.queue.length = lane.flying.length = 0;
    for (let i = 0; i < count && rows.enqueued[i] <= t; i++) {
      const lane = laneOfLink[rows.link[i]];
      if (lane.world !== state.world) continue;
      if (waits(i, t)) stackOfLink[rows.link[i]].queue.push(i);
      else if (flies(i, t)) lane.flying.push(i);
      else if (dropped(i) && rows.ended[i] <= t && t < rows.ended[i] + fall) falling.push(i);
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (const lane of ours) {
      paintFlying(lane, t);
      if (lane.queue.length) paintQueue(lane);
    }
    for (const i of falling) paintDrop(i, (t - rows.ended[i]) / fall);
    const sum = (which) => ours.reduce((all, lane) => all + lane[which].length, 0);
    return [sum("queue"), sum("flying")];
  }

  const thickness = (i) => (rows.bytes[i] > SMALL_BYTES ? 1 : 0);

  function paintFlying(lane, t) {
    for (let part = 0; part < lane.points.length - 1; part++) {
      along(lane, part);
      const [least, most] = lane.ways.slice(part, part + 2);
      for (const i of lane.flying) {
        let [tail, head] = ends(i, t);
        [tail, head] = [tail * lane.length, head * lane.length];
        if (head - tail > 2) tail += 0.8; // a gap to the following packet
        else [tail, head] = [Math.max(0, head - 2), Math.max(head, 2)];
        [tail, head] = [Math.max(tail, least), Math.min(head, most)];
        if (head <= tail) continue;
        const thick = THICK.lane[thickness(i)];
        pen.fillStyle = colourOf[rows.flow[i]];
        pen.fillRect(tail, -ASIDE.lane - thick / 2, head - tail, thick);
      }
    }
  }

  function paintQueue(lane) {
    along(lane, 0);
    const gap = Math.min(0.7, 0.3 * lane.step);
    lane.queue.forEach((i, place) => {
      const wide = THICK.stack[thickness(i)];
      pen.fillStyle = colourOf[rows.flow[i]];
      pen.fillRect(lane.stack - wide / 2, -ASIDE.stack - (place + 1) * lane.step + gap, wide, lane.step - gap);
    });
    upright(lane.stack, -ASIDE.stack - lane.queue.length * lane.step - 11);
    pen.fillStyle = ink("--ink");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(lane.queue.length, 0, 0);
  }

  /** Moves the pen to a position on a lane without rotation. */
  function upright(x, y) {
    const to = pen.getTransform().transformPoint({ x, y });
    pen.setTransform(state.place[0], 0, 0, state.place[3], to.x, to.y);
  }

  /** A dropped packet: a cross where it was lost, next to the waiting packets, and the packet falling from there. */
  function paintDrop(i, share) {
    const flew = rows.dequeued[i] <= rows.ended[i];
    const lane = (flew ? laneOfLink : stackOfLink)[rows.link[i]];
    const way = flew ? ends(i, rows.ended[i])[1] * lane.length : lane.stack;
    along(lane, partOf(lane, way));
    const onwards = pen.getTransform().a < 0 ? -1 : 1; // away from the stack
    if (flew) upright(way, -ASIDE.lane);
    else upright(way + ASIDE.drop, -ASIDE.stack - lane.queue.length * lane.step);
    pen.globalAlpha = 1 - share ** 2;
    pen.strokeStyle = ink("--bad");
    pen.lineWidth = 1.8;
    pen.beginPath();
    for (const side of [-5, 5]) {
      pen.moveTo(-5, side);
      pen.lineTo(5, -side);
    }
    pen.stroke();
    pen.fillStyle = colourOf[rows.flow[i]];
    if (!calm.matches) pen.fillRect(onwards * 18 * Math.sqrt(share) - 5, 95 * share ** 2 - 2, 10, 4);
    pen.globalAlpha = 1;
  }

  /** The timeline: the number of waiting packets in this network, and the times of drops. */
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
    const [waiting, flying] = paint();
    const digits = Math.min(6, Math.max(2, 2 - Math.round(Math.log10(state.speed))));
    const lost = state.drops.filter((i) => rows.ended[i] <= state.t).length;
    const words = `${toSeconds(state.t).toFixed(digits)} s`;
    parts.time.textContent = words;
    parts.now.textContent = `${waiting} waiting, ${flying} in transit, ${lost} of ${state.drops.length} dropped`;
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

  /** Goes to the next or the previous drop and pauses. */
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

  /** The highest speed at which the packets in transit at an instant take at least a second on average. */
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
  parts.slider.max = STEPS;
  choose(Number(parts.world?.value ?? 0));
  if (state.drops.length) show(rows.ended[state.drops[0]]);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(stage);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);

  return {
    end() {
      play(false);
      sizes.disconnect();
      dark.removeEventListener("change", redraw);
    },
    rows: count,
    from: data.from,
    to: data.to,
    show: (seconds) => show(toTicks(seconds)),
    time: () => toSeconds(state.t),
    drops: () => state.drops.map((i) => toSeconds(rows.ended[i])),
    on(link, seconds) {
      const t = toTicks(seconds);
      const ours = [...rows.link.keys()].filter((i) => data.links[rows.link[i]].name === link);
      return { waiting: ours.filter((i) => waits(i, t)).length, flying: ours.filter((i) => flies(i, t)).length };
    },
    paint,
  };
}

class PacketsElement extends HTMLElement {
  connectedCallback() {
    const told = document.getElementById("animation");
    if (told && !this.firstChild) this.show(JSON.parse(told.textContent));
  }

  disconnectedCallback() {
    this.running?.end();
  }

  show(data) {
    this.running?.end();
    const stage = markup(data);
    this.replaceChildren(stage);
    this.running = stage.animation = animated(stage, data);
    document.documentElement.dataset.animation = "ready";
  }
}

customElements.define("talkspurt-packets", PacketsElement);
