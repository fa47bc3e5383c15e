// The charts, drawn by uPlot in the colours of the page; those over time share a cursor. They are
// redrawn when the page changes its width or the colour scheme changes.

const charts = JSON.parse(document.getElementById("charts").textContent);
const HEIGHT = 200;
const MARKERS = 7; // on each line
const drawn = new Map();

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

/** "ink" is the text colour of the page, which is visible in both colour schemes. */
function colour(line) {
  return line.colour === "ink" ? ink("--ink") : line.colour;
}

function series(line, stepped) {
  if (line.points) {
    const look = { show: true, size: 3, width: 0, fill: colour(line) };
    return { paths: () => null, label: line.label, stroke: colour(line), points: look };
  }
  return {
    paths: stepped ? uPlot.paths.stepped({ align: stepped }) : undefined,
    label: line.label,
    stroke: colour(line),
    width: line.width,
    dash: line.dashes.length ? line.dashes : undefined,
    points: { show: false },
  };
}

// As in figures/style.py: from zero, unless the data is far from it.
const NEAR = 0.4;
function fitted(_, low, high) {
  if (low === null) return [0, 1];
  if (low > NEAR * high && high > 0) {
    const margin = 0.08 * (high - low) || 0.1 * high;
    return [low - margin, high + margin];
  }
  return [Math.min(0, low), high > 0 ? high * 1.06 : 1];
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

/** The place of the value that a line has at a place of its chart, -1 outside the line. */
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
function markers(chart) {
  const marked = chart.lines.filter((line) => line.marker && !line.background);
  return (plot, number) => {
    const line = chart.lines[number - 1];
    const place = marked.indexOf(line);
    if (place < 0 || marked.length < 2 || !plot.series[number].show) return;
    const [xs, ys] = [plot.data[0], plot.data[number]];
    const { min, max } = plot.scales.x;
    const pen = plot.ctx;
    pen.save();
    pen.lineWidth = 1.5 * devicePixelRatio;
    pen.strokeStyle = colour(line);
    pen.fillStyle = line.dashes.length ? ink("--paper") : colour(line);
    for (let k = 0; k < MARKERS; k++) {
      const at = min + ((max - min) * (k + (place + 0.5) / marked.length)) / MARKERS;
      let spot = plot.valToIdx(at);
      if (chart.stepped > 0 && xs[spot] > at) spot--;
      // The value of a step that ends at its place is that of the next one.
      if (chart.stepped < 0 && spot + 1 < ys.length) spot++;
      const i = nearest(ys, spot, chart.stepped);
      const y = ys[i];
      if (y === null || y === undefined) continue;
      const x = chart.stepped > 0 ? at : xs[chart.stepped ? spot - 1 : i];
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
function at(chart, plot, number, place) {
  const line = chart.lines[number - 1];
  return number && !line.points ? nearest(plot.data[number], place, chart.stepped) : place;
}

/** The values at the cursor, in a box beside it; only in the chart under the pointer. */
function tip(chart) {
  const box = document.createElement("div");
  box.className = "tip";
  return {
    ready: (plot) => plot.over.append(box),
    setCursor: (plot) => {
      const { idx, left } = plot.cursor;
      box.hidden = idx === null || idx === undefined || left < 0 || !plot.over.matches(":hover");
      if (box.hidden) return;
      const rows = chart.lines.map((line, i) => [line, plot.data[i + 1][at(chart, plot, i + 1, idx)], plot.series[i + 1].show]);
      box.replaceChildren(chart.over ? `${shown(plot.data[0][idx])} ${chart.over.unit}` : `${plot.data[0][idx].toFixed(2)} s`);
      for (const [line, value, seen] of rows) {
        if (!seen || value === null || value === undefined) continue;
        const row = document.createElement("div");
        row.append(swatch(line), `${line.label} ${shown(value)}`);
        box.append(row);
      }
      const right = left > plot.over.clientWidth / 2;
      box.style.left = right ? "auto" : `${left + 12}px`;
      box.style.right = right ? `${plot.over.clientWidth - left + 12}px` : "auto";
    },
  };
}

function options(chart, width) {
  const hover = tip(chart);
  return {
    width,
    height: HEIGHT,
    pxAlign: chart.over ? 0 : 1, // a curve would look like steps
    cursor: { sync: chart.over ? undefined : { key: "talkspurt" }, points: { size: 6 }, dataIdx: (plot, number, place) => at(chart, plot, number, place) },
    legend: { show: false },
    scales: { x: { time: false }, y: chart.logarithmic ? { distr: 3 } : { range: chart.range ?? fitted } },
    axes: [axis(chart.over ? chart.over.label : "time / s"), { ...axis(chart.unit), size: 54 }],
    series: [{ label: "time" }, ...chart.lines.map((line) => series(line, chart.stepped))],
    hooks: { drawSeries: [markers(chart)], ready: [hover.ready], setCursor: [hover.setCursor] },
  };
}

/** The line of a legend entry, with colour, dashes and marker as in the chart. */
function swatch(line) {
  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const picture = svg("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" });
  const stroke = { x1: 1, y1: 5, x2: 25, y2: 5, stroke: colour(line), "stroke-width": 2.5 };
  if (line.points) picture.append(svg("circle", { cx: 13, cy: 5, r: 3, fill: colour(line) }));
  else picture.append(svg("line", { ...stroke, "stroke-dasharray": line.dashes.join(" ") || "none" }));
  if (line.marker && !line.background) {
    const points = shape(line.marker, 13, 5, 4).map((corner) => corner.map((v) => v.toFixed(1)).join());
    const fill = line.dashes.length ? "var(--paper)" : colour(line);
    picture.append(svg("polygon", { points: points.join(" "), fill, stroke: colour(line), "stroke-width": 1.5 }));
  }
  return picture;
}

/** One line of buttons that hide lines; background traffic has one for all. */
function legend(place, chart) {
  const list = place.parentElement.querySelector(".legend");
  const background = chart.lines.filter((line) => line.background);
  const entries = chart.lines.filter((line) => !line.background).map((line) => [line.label, [line]]);
  if (background.length) {
    const words = background.length > 1 ? `other traffic (${background.length})` : background[0].label;
    entries.push([words, background]);
  }
  for (const [words, lines] of entries) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch(lines[0]), words);
    button.addEventListener("click", () => {
      const show = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(show));
      for (const line of lines) {
        line.hidden = !show;
        drawn.get(place).setSeries(chart.lines.indexOf(line) + 1, { show });
      }
    });
    list.append(button);
  }
}

function chartOf(place) {
  return charts.find((chart) => chart.name === place.dataset.chart);
}

/** The values of a line at all places of its chart, undefined where it has none. */
function spread(line, count) {
  if (line.at === null) return line.values;
  const values = new Array(count).fill(undefined);
  line.at.forEach((place, k) => (values[place] = line.values[k]));
  return values;
}

function draw(place) {
  const chart = chartOf(place);
  drawn.get(place)?.destroy();
  const data = [chart.x, ...chart.lines.map((line) => spread(line, chart.x.length))];
  const plot = new uPlot(options(chart, place.clientWidth), data, place);
  chart.lines.forEach((line, i) => line.hidden && plot.setSeries(i + 1, { show: false }));
  drawn.set(place, plot);
}

const places = [...document.querySelectorAll(".plot")];
const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const plot = drawn.get(target);
    if (plot && plot.width !== target.clientWidth) plot.setSize({ width: target.clientWidth, height: HEIGHT });
  }
});
for (const place of places) {
  draw(place);
  legend(place, chartOf(place));
  watcher.observe(place);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));
document.documentElement.dataset.charts = "ready";
