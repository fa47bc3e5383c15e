// The charts over time, drawn by uPlot with a shared cursor and the colours of the page. They are
// redrawn when the page changes its width or the colour scheme changes.

const charts = JSON.parse(document.getElementById("charts").textContent);
const HEIGHT = 220;
const drawn = new Map();

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(label) {
  return {
    label,
    labelSize: 22,
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
  return {
    paths: stepped ? uPlot.paths.stepped({ align: -1 }) : undefined,
    label: line.label,
    stroke: colour(line),
    width: line.width,
    dash: line.dashes.length ? line.dashes : undefined,
    points: { show: false },
    value: (_, value) => shown(value),
  };
}

function fromZero(_, low, high) {
  return [Math.min(0, low), high > 0 ? high * 1.06 : 1];
}

function options(chart, width) {
  const range = chart.range ?? fromZero;
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: "talkspurt" }, points: { size: 6 } },
    scales: { x: { time: false }, y: chart.logarithmic ? { distr: 3 } : { range } },
    axes: [axis("time / s"), { ...axis(chart.unit), size: 58 }],
    series: [{ label: "time", value: (_, value) => (value === null ? "–" : `${value.toFixed(2)} s`) }, ...chart.lines.map((line) => series(line, chart.stepped))],
  };
}

/** The line of a legend entry, with colour and dashes as in the rest of the page. */
function swatch(line) {
  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const marker = svg("svg", { class: "u-marker", viewBox: "0 0 26 10", "aria-hidden": "true" });
  const stroke = { x1: 1, y1: 5, x2: 25, y2: 5, stroke: colour(line), "stroke-width": 2.5 };
  marker.append(svg("line", { ...stroke, "stroke-dasharray": line.dashes.join(" ") || "none" }));
  return marker;
}

function draw(place) {
  const chart = charts[Number(place.dataset.chart)];
  drawn.get(place)?.destroy();
  const data = [chart.x, ...chart.lines.map((line) => line.values)];
  const plot = new uPlot(options(chart, place.clientWidth), data, place);
  const markers = plot.root.querySelectorAll(".u-legend .u-marker");
  chart.lines.forEach((line, i) => markers[i + 1].replaceWith(swatch(line))); // the first belongs to time
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
  watcher.observe(place);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.forEach(draw));
document.documentElement.dataset.charts = "ready";
