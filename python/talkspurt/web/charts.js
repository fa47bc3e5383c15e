// A chart as an element of any page: <talkspurt-chart>, with uPlot, charts.css, and the colours of the
// page as variables. Its property `chart` is JSON, without which it takes that of its name (data-chart)
// in the script element with the id "charts":
//
//   title, unit, panels: [{ title, lines }]
//   over: { label, unit, values }  of the x axis; default: time in seconds; `values` are the names of places 0, 1 …
//   stacked, logarithmic, range    of the y axis; lines of a stack, the highest first, have the same places
//   note, explained: [{ line, name, meaning }]
//
// and of a line: label, colour (#rrggbb, or the name of a variable of the page), x, values, and, if it is
// not a plain line, look ("points" or "area"), dashes, width, marker, stepped (1: a value holds until the
// next place, -1: it held since the last one), background, halves (of the interval of each value, which then
// has a point). Two columns of a table are x and values.
// Charts over time share a cursor. All are redrawn when their width or the colour scheme changes.

const HEIGHT = { one: 200, several: 160 };
const MARKERS = 7; // on each line
const MAX_ABOVE = 4; // as in figures/drawing.py: an area stretches the axis up to this multiple of the lines
const FLAT = 0.25;
const TIME = { label: "time", unit: "s" };

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(label) {
  return {
    label,
    labelSize: 20,
    labelFont: "12px system-ui, sans-serif",
    font: "11px system-ui, sans-serif",
    stroke: ink("--quiet"),
    grid: { stroke: ink("--rule"), width: 1 },
    ticks: { stroke: ink("--rule"), width: 1 },
  };
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function colour(line) {
  return line.colour.startsWith("#") ? line.colour : ink(`--${line.colour}`);
}

function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function series(line, stacked) {
  const look = { label: line.label, stroke: colour(line) };
  if (line.look === "points") {
    return { ...look, paths: () => null, points: { show: true, size: 3, width: 0, fill: colour(line) } };
  }
  return {
    ...look,
    paths: line.stepped ? uPlot.paths.stepped({ align: line.stepped, alignGaps: line.stepped }) : undefined,
    width: line.width ?? 1.6,
    dash: line.dashes?.length ? line.dashes : undefined,
    fill: stacked ? colour(line) : line.look === "area" ? `${colour(line)}40` : undefined,
    points: line.halves ? { show: true, size: 6, width: 1, fill: colour(line) } : { show: false },
  };
}

/** The intervals of the values of a line. */
function intervals(panel) {
  return (plot, number) => {
    const line = panel.lines[number - 1];
    if (!line?.halves || line.hidden) return;
    const pen = plot.ctx;
    pen.save();
    pen.lineWidth = 1.2 * devicePixelRatio;
    pen.strokeStyle = colour(line);
    line.x.forEach((place, i) => {
      const [value, half] = [line.values[i], line.halves[i]];
      if (value === null || !half) return;
      const x = plot.valToPos(place, "x", true);
      pen.beginPath();
      pen.moveTo(x, plot.valToPos(value - half, "y", true));
      pen.lineTo(x, plot.valToPos(value + half, "y", true));
      pen.stroke();
    });
    pen.restore();
  };
}

// As in figures/style.py: from zero, unless the data is far from it.
const NEAR = 0.4;
function fitted(low, high) {
  if (low === null) return [0, 1];
  if (low > NEAR * high && high > 0) {
    const margin = 0.08 * (high - low) || 0.1 * high;
    return [low - margin, high + margin];
  }
  return [Math.min(0, low), high > 0 ? high * 1.06 : 1];
}

/** The least and the greatest value of the lines that are shown. */
function extent(lines) {
  let [low, high] = [null, null];
  for (const value of lines.flatMap((line) => (line.hidden ? [] : line.values))) {
    if (value === null) continue;
    low = Math.min(low ?? value, value);
    high = Math.max(high ?? value, value);
  }
  return [low, high];
}

/** The range of the y axis of a panel: mostly common to all, unless a capacity is behind its lines. */
function range(chart, panel) {
  if (chart.range) return chart.range;
  if (chart.stacked) {
    const heights = chart.panels.flatMap((one) => stack(one, one.lines.map((line) => line.values))).flat();
    return [0, 1.06 * heights.reduce((most, value) => Math.max(most, value), 0) || 1];
  }
  const areas = panel.lines.filter((line) => line.look === "area" && !line.hidden);
  if (!areas.length) {
    // What would be flat beside the other panels has a range of its own.
    const [all, own] = [extent(chart.panels.flatMap((one) => one.lines)), extent(panel.lines)];
    return fitted(...(own[1] < FLAT * all[1] ? own : all));
  }
  const [, most] = extent(panel.lines.filter((line) => line.look !== "area"));
  const [, capacity] = extent(areas);
  return [0, 1.06 * (most ? Math.max(most, Math.min(capacity, MAX_ABOVE * most)) : capacity)];
}

// Corners and rotation, in turns, of matplotlib's markers.
const SHAPES = { o: [24, 0], s: [4, 1 / 8], "^": [3, 3 / 4], v: [3, 1 / 4], "<": [3, 1 / 2], D: [4, 0], p: [5, 3 / 4], h: [6, 0], P: [4, 0], X: [4, 1 / 8] };

function shape(marker, x, y, size) {
  const [corners, turned] = SHAPES[marker] ?? SHAPES.o;
  return Array.from({ length: corners }, (_, i) => {
    const angle = 2 * Math.PI * (i / corners + turned);
    return [x + size * Math.cos(angle), y + size * Math.sin(angle)];
  });
}

/** The place of the value that a line has at a place of its panel, -1 outside the line. */
function nearest(values, place, stepped) {
  let before = place;
  let after = place;
  while (before >= 0 && values[before] === undefined) before--;
  while (after < values.length && values[after] === undefined) after++;
  if (before < 0 || after === values.length) return -1;
  if (stepped) return stepped > 0 ? before : after;
  return after - place < place - before ? after : before;
}

/** A few markers on each line, at other places than those of the other lines. */
function markers(panel) {
  const marked = panel.lines.filter((line) => line.marker && !line.background && !line.halves);
  return (plot, number) => {
    const line = panel.lines[number - 1];
    const place = marked.indexOf(line);
    if (place < 0 || marked.length < 2 || line.hidden) return;
    const [xs, ys] = [plot.data[0], plot.data[number]];
    const { min, max } = plot.scales.x;
    const pen = plot.ctx;
    pen.save();
    pen.lineWidth = 1.5 * devicePixelRatio;
    pen.strokeStyle = colour(line);
    pen.fillStyle = line.dashes?.length ? ink("--paper") : colour(line);
    for (let k = 0; k < MARKERS; k++) {
      const at = min + ((max - min) * (k + (place + 0.5) / marked.length)) / MARKERS;
      let spot = plot.valToIdx(at);
      if (line.stepped > 0 && xs[spot] > at) spot--;
      // The value of a step that ends at its place is that of the next one.
      if (line.stepped < 0 && spot + 1 < ys.length) spot++;
      const i = nearest(ys, spot, line.stepped);
      const y = ys[i];
      if (y === null || y === undefined) continue;
      const x = line.stepped > 0 ? at : xs[line.stepped ? spot - 1 : i];
      const corners = shape(line.marker, plot.valToPos(x, "x", true), plot.valToPos(y, "y", true), 4 * devicePixelRatio);
      pen.beginPath();
      corners.forEach((corner) => pen.lineTo(...corner));
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
    pen.restore();
  };
}

/** The place that the cursor shows of a line; of points, only one below it. */
function at(panel, plot, number, place) {
  const line = panel.lines[number - 1];
  return number && line.look !== "points" ? nearest(plot.data[number], place, line.stepped) : place;
}

/** The values at the cursor, in a box beside it; only in the panel under the pointer. */
function tip(chart, panel, spreads) {
  const box = element("div", { class: "tip" });
  const row = (...inside) => box.append(element("div", {}, ...inside));
  const { unit, values } = chart.over ?? TIME;
  return {
    ready: (plot) => plot.over.append(box),
    setCursor: (plot) => {
      const { idx, left } = plot.cursor;
      box.hidden = idx === null || idx === undefined || left < 0 || !plot.over.matches(":hover");
      if (box.hidden) return;
      const place = plot.data[0][idx];
      box.replaceChildren(values ? values[place] : unit === "s" ? `${place.toFixed(2)} s` : `${shown(place)} ${unit}`);
      let sum = 0;
      panel.lines.forEach((line, i) => {
        const value = spreads[i][at(panel, plot, i + 1, idx)];
        if (line.hidden || value === null || value === undefined) return;
        sum += value;
        row(swatch(line, chart.stacked), `${line.label} ${shown(value)}`);
      });
      if (chart.stacked) row(`sum ${shown(sum)}`);
      const right = left > plot.over.clientWidth / 2;
      box.style.left = right ? "auto" : `${left + 12}px`;
      box.style.right = right ? `${plot.over.clientWidth - left + 12}px` : "auto";
    },
  };
}

/** The line of a legend entry, with colour, dashes and marker as in the chart. */
function swatch(line, stacked) {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const picture = svg("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" });
  const stroke = { x1: 1, y1: 5, x2: 25, y2: 5, stroke: colour(line), "stroke-width": 2.5 };
  if (line.look === "points") picture.append(svg("circle", { cx: 13, cy: 5, r: 3, fill: colour(line) }));
  else if (stacked || line.look === "area") picture.append(svg("rect", { x: 6, y: 0, width: 14, height: 10, fill: colour(line), "fill-opacity": stacked ? 1 : 0.25 }));
  else picture.append(svg("line", { ...stroke, "stroke-dasharray": line.dashes?.join(" ") || "none" }));
  if (line.marker && !line.background) {
    const points = shape(line.marker, 13, 5, 4).map((corner) => corner.map((v) => v.toFixed(1)).join());
    const fill = line.dashes?.length ? "var(--paper)" : colour(line);
    picture.append(svg("polygon", { points: points.join(" "), fill, stroke: colour(line), "stroke-width": 1.5 }));
  }
  return picture;
}

/** The places of all lines of a panel, and the values of each, undefined where it has none. */
function spread(panel) {
  const places = [...new Set(panel.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const number = new Map(places.map((x, i) => [x, i]));
  const spreads = panel.lines.map((line) => {
    const values = new Array(places.length).fill(undefined);
    line.x.forEach((x, k) => (values[number.get(x)] = line.values[k]));
    return values;
  });
  return [places, spreads];
}

/** Each line on top of those after it that are shown, so that the lowest is drawn last. */
function stack(panel, spreads) {
  let below = null;
  const sums = spreads.toReversed().map((values, n) => {
    const line = panel.lines.at(-1 - n);
    const sum = values.map((value, i) => (value === undefined || value === null ? value : value + (below?.[i] ?? 0)));
    if (!line.hidden) below = sum;
    return line.hidden ? [] : sum;
  });
  return sums.toReversed();
}

class Chart extends HTMLElement {
  #chart = null;
  #panels = []; // { panel, place, plot, places, spreads }
  #watcher = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#fit(target)));
  #scheme = matchMedia("(prefers-color-scheme: dark)");
  #redraw = () => this.#draw();

  set chart(chart) {
    this.#chart = chart;
    if (this.isConnected) this.#build();
  }

  get chart() {
    return this.#chart;
  }

  connectedCallback() {
    if (!this.#chart && this.dataset.chart) {
      const all = JSON.parse(document.getElementById("charts").textContent);
      this.#chart = all.find((chart) => chart.name === this.dataset.chart);
    }
    this.#scheme.addEventListener("change", this.#redraw);
    if (this.#chart) this.#build();
  }

  disconnectedCallback() {
    this.#scheme.removeEventListener("change", this.#redraw);
    this.#watcher.disconnect();
  }

  #build() {
    const chart = this.#chart;
    this.#watcher.disconnect();
    this.#panels.forEach((one) => one.plot?.destroy());
    const several = chart.panels.length > 1;
    this.classList.toggle("several", several);
    const { label, unit } = chart.over ?? TIME;
    this.#panels = chart.panels.map((panel) => {
      const words = `${chart.title}${panel.title ? `, ${panel.title}` : ""} over ${label}: ${panel.lines.map((line) => line.label).join(", ")}`;
      const [places, spreads] = spread(panel);
      return { panel, places, spreads, plot: null, place: element("div", { class: "plot", role: "img", "aria-label": words }) };
    });
    const panels = this.#panels.map(({ panel, place }) => element("div", {}, ...(panel.title ? [element("p", { class: "panel" }, panel.title)] : []), place));
    const caption = element("figcaption", {}, `${chart.title} `, element("small", {}, chart.unit));
    const figure = element("figure", { class: "chart" }, caption, element("div", { class: "panels" }, ...panels), this.#legend());
    if (chart.note) figure.append(element("p", { class: "quiet" }, chart.note));
    if (chart.explained?.length) figure.append(explained(chart.explained));
    this.replaceChildren(figure);
    this.#draw();
    this.#panels.forEach((one) => this.#watcher.observe(one.place));
  }

  /** A button for each name that hides its lines; background traffic has one for all. */
  #legend() {
    const named = new Map();
    const lines = this.#chart.panels.flatMap((panel) => panel.lines);
    const behind = lines.filter((line) => line.background);
    for (const line of [...lines.filter((line) => !line.background), ...behind]) {
      const words = !line.background || behind.length === 1 ? line.label : `other traffic (${behind.length})`;
      named.set(words, [...(named.get(words) ?? []), line]);
    }
    const list = element("div", { class: "legend", role: "group", "aria-label": `Lines of ${this.#chart.title}` });
    for (const [words, its] of named) {
      const button = element("button", { type: "button", "aria-pressed": "true" }, swatch(its[0], this.#chart.stacked), words);
      button.addEventListener("click", () => {
        const show = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(show));
        for (const line of its) line.hidden = !show;
        this.#panels.forEach((one) => this.#show(one));
      });
      list.append(button);
    }
    return list;
  }

  #data({ panel, places, spreads }) {
    return [places, ...(this.#chart.stacked ? stack(panel, spreads) : spreads)];
  }

  /** Shows and hides lines as the legend says. */
  #show(one) {
    one.plot.batch(() => {
      one.panel.lines.forEach((line, i) => one.plot.setSeries(i + 1, { show: !line.hidden }));
      if (this.#chart.stacked) one.plot.setData(this.#data(one), false);
      else one.plot.redraw();
    });
  }

  #draw() {
    for (const one of this.#panels) {
      one.plot?.destroy();
      one.plot = new uPlot(this.#options(one), this.#data(one), one.place);
      if (one.panel.lines.some((line) => line.hidden)) this.#show(one);
    }
  }

  #options({ panel, place, spreads }) {
    const chart = this.#chart;
    const hover = tip(chart, panel, spreads);
    const { label, unit, values } = chart.over ?? TIME;
    const named = values && { splits: () => values.map((_, i) => i), values: (_, places) => places.map((place) => values[place]) };
    const several = chart.panels.length > 1;
    const common = several || chart.stacked || panel.lines.some((line) => line.look === "area");
    const fit = (_, low, high) => (common ? range(chart, panel) : fitted(low, high));
    return {
      width: place.clientWidth,
      height: several ? HEIGHT.several : HEIGHT.one,
      pxAlign: unit === "s" ? 1 : 0, // a curve would look like steps
      cursor: { sync: label === TIME.label ? { key: "talkspurt" } : undefined, points: { size: 6 }, dataIdx: (plot, number, spot) => at(panel, plot, number, spot) },
      legend: { show: false },
      scales: { x: { time: false, ...(values ? { range: [-0.4, values.length - 0.6] } : {}) }, y: chart.logarithmic ? { distr: 3 } : { range: chart.range ?? fit } },
      axes: [{ ...axis(unit ? `${label} / ${unit}` : label), size: 32, ...named }, { ...axis(chart.unit), size: 54 }],
      series: [{ label }, ...panel.lines.map((line) => series(line, chart.stacked))],
      hooks: { drawSeries: [markers(panel), intervals(panel)], ready: [hover.ready], setCursor: [hover.setCursor] },
    };
  }

  #fit(place) {
    const { plot } = this.#panels.find((one) => one.place === place) ?? {};
    if (plot && plot.width !== place.clientWidth) plot.setSize({ width: place.clientWidth, height: plot.height });
  }
}

/** The meanings of lines, folded. */
function explained(parts) {
  const list = element("dl", {});
  for (const { line, name, meaning } of parts) {
    list.append(element("dt", {}, element("a", { href: `#m-${name}` }, line)), element("dd", {}, meaning));
  }
  return element("details", { class: "explained" }, element("summary", {}, "What the lines are"), list);
}

customElements.define("talkspurt-chart", Chart);
document.documentElement.dataset.charts = "ready";
