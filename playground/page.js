// The playground: the text of a scenario on one side, what the engine makes of it on the other. The engine runs in
// a worker (worker.js); the answer, the charts and the tables are its JSON, drawn by charts.js, player.js and here.

const MOST_RUNS = 100;
const MOST_FLOWS = 2000;
const LONG_S = 60; // longer runs are asked about
const MOST_FILE = 100e6;
const MOST_OFFERED = 8; // links to give a trace to
const MOST_KEPT = 300e6; // bytes of memory with which the engine goes on to another scenario
const CHECK_MS = 300;
const STUCK_MS = 8000;
const DRAFT = "talkspurt.draft"; // in the storage of the tab, so that another tab has its own
const MOST_TRIED = 8; // values of the slider that are noted
const SLIDER = 4; // the slider goes from a quarter of the written value to four times as much

const $ = (id) => document.getElementById(id);

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside.flat().filter((part) => part !== null && part !== undefined));
  return made;
}

const { Engine, MOST_TEXT, asked, compiled, embedded, packed, read, unfolded, unpacked } = globalThis.TalkspurtEngine;

function time(seconds) {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;
}

/** A number with narrow spaces between thousands, as in the tables. */
const counted = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function swatch({ colour, dashes }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 26 10");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(svg.namespaceURI, "line");
  for (const [key, value] of Object.entries({ x1: 1, y1: 5, x2: 25, y2: 5, stroke: colour, "stroke-width": 2.5 })) line.setAttribute(key, value);
  if (dashes.length) line.setAttribute("stroke-dasharray", dashes.join(" "));
  svg.append(line);
  return svg;
}

/** A table of texts; `row` may wrap the first text of a row, such as by a button. */
function table(caption, { heads, columns, rows, more }, wrap = (_, text) => text) {
  const head = [
    ...heads.map((name) => element("th", { scope: "col" }, name)),
    ...columns.map(({ label, unit, meaning }) => element("th", { scope: "col", class: "n", title: meaning }, label, unit ? element("small", {}, unit) : null)),
  ];
  const body = rows.map((row) => {
    const first = row.texts.length - (heads.includes("transport") ? (heads.includes("source") ? 3 : 2) : 1);
    return element("tr", {}, row.texts.map((text, i) => {
      const inside = i === 0 ? wrap(row, text) : text;
      return element(i <= first ? "th" : "td", i <= first ? { scope: "row" } : {}, i === first && row.style ? [swatch(row.style), " "] : null, inside);
    }), row.cells.map(({ text, spread }) => element("td", { class: "n" }, text, spread ? element("small", {}, ` ${spread}`) : null)));
  });
  return [
    element("div", { class: "wide", role: "region", "aria-label": caption, tabindex: "0" },
      element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, head)), element("tbody", {}, body))),
    more ? element("p", { class: "quiet" }, `The first ${rows.length} of ${counted(rows.length + more)} rows; “Download results” has all flows and links of the shown run.`) : null,
    element("details", { class: "explained" }, element("summary", {}, "What the columns mean"),
      columns.map(({ label, meaning }) => element("p", {}, element("b", {}, capital(label)), `: ${meaning}`)),
      element("p", {}, "“<” stands before an upper bound, where a score is outside the range of its model; “=” stands where every seed gave the same value.")),
  ];
}

class Playground {
  constructor(catalogue, engine) {
    this.catalogue = catalogue;
    this.engine = engine;
    this.path = "";
    this.given = []; // fields that a link or the user sets
    this.own = {}; // files that the user added, by name
    this.slid = []; // the field that the slider changes
    this.busy = false;
    this.loaded = null;
    this.editor = TalkspurtEditor.editor($("editor"), {
      text: "", schema: catalogue.schema, label: "Scenario in TOML", changed: () => this.changed(), files: () => Object.keys(this.own),
    });
    $("scenarios").append(element("option", { value: "", hidden: true }, "your own"));
    for (const { path, title } of catalogue.scenarios) {
      const label = path.split("/").at(-2);
      if ($("scenarios").lastChild?.label !== label) $("scenarios").append(element("optgroup", { label }));
      $("scenarios").lastChild.append(element("option", { value: path }, `${title} (${path.split("/").at(-1).replace(".toml", "")})`));
    }
    $("scenarios").addEventListener("change", () => this.asked($("scenarios").value));
    $("run").addEventListener("click", () => this.run({ scroll: true }));
    addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.stopPropagation();
      if (!$("run").disabled) this.run({ scroll: true });
    }, { capture: true });
    $("set").addEventListener("submit", (event) => {
      event.preventDefault();
      this.set($("set-field").value);
    });
    $("stop").addEventListener("click", () => this.engine.stop());
    $("share").addEventListener("click", () => this.share());
    $("download").addEventListener("click", () => this.download());
    $("download-results").addEventListener("click", () => this.downloadResults());
    // An input whose value stays does not notice that the same file is chosen again.
    const taken = (input, take) => {
      take([...input.files]);
      input.value = "";
    };
    $("files").addEventListener("change", () => taken($("files"), (files) => this.take(files)));
    $("folder").addEventListener("change", () => taken($("folder"), (files) => this.results(TalkspurtResults.chosen(files))));
    $("packets").addEventListener("toggle", () => this.drawPackets());
    $("numbers").addEventListener("change", () => this.pick());
    $("slider").addEventListener("input", () => this.slide());
    $("about").textContent = "This page loads nothing from elsewhere and sends nothing.";
    if (!embedded("engine")) $("about").append(" ", element("a", { href: "../index.html" }, "Documentation"));
    addEventListener("hashchange", () => this.follow());
    for (const kind of ["dragover", "dragleave", "drop"]) {
      addEventListener(kind, (event) => {
        event.preventDefault();
        document.body.classList.toggle("dropping", kind === "dragover");
        if (kind !== "drop") return;
        const { items, files } = event.dataTransfer;
        // A folder, or all that is in one.
        const isFolder = [...items].some((item) => item.webkitGetAsEntry?.()?.isDirectory || item.getAsFile?.()?.name === "manifest.json");
        if (isFolder) this.results(TalkspurtResults.dropped(items));
        else this.take(files);
      });
    }
  }

  /** Shows the scenario of the address, or else what was typed here before a reload, or the first. */
  async follow() {
    const hash = new URLSearchParams(location.hash.slice(1));
    let lost = "";
    try {
      if (hash.get("s")) {
        const { text, path, sets = [] } = await unpacked(hash.get("s"));
        this.show(text, path, sets);
        return;
      }
    } catch {
      lost = "The link is damaged, not complete or too long.";
    }
    const named = this.catalogue.scenarios.find(({ path }) => path === `/${hash.get("open")}`);
    if (hash.get("open") && !named) lost = `This page has no scenario ${hash.get("open").slice(0, 99)}.`;
    const draft = named ? null : this.draft();
    const { path } = named ?? draft ?? this.catalogue.scenarios[0];
    $("scenarios").value = path;
    if (draft) this.show(draft.text, path);
    else this.choose(path, hash.getAll("set").map((set) => set.split(/=(.*)/s).slice(0, 2)));
    $("notice").hidden = !lost;
    $("notice").textContent = `${lost} Another scenario is shown.`;
  }

  /** What was typed in this tab. */
  draft() {
    try {
      const found = JSON.parse(sessionStorage.getItem(DRAFT));
      return typeof found?.text === "string" && typeof found.path === "string" ? found : null;
    } catch {
      return null;
    }
  }

  keep() {
    try {
      sessionStorage.setItem(DRAFT, JSON.stringify({ path: this.path, text: this.editor.text }));
    } catch {
      // Storage is full or refused: the text is in the page still.
    }
  }

  /** Shows a scenario of the list, unless what was typed is to be kept. */
  asked(path) {
    const known = this.catalogue.scenarios.find((one) => one.path === this.path)?.text;
    if (this.editor.text !== known && !confirm("Replace what you typed? Undo in the editor brings it back.")) {
      $("scenarios").value = known === undefined ? "" : this.path;
      return;
    }
    this.choose(path);
  }

  choose(path, sets) {
    const found = this.catalogue.scenarios.find((one) => one.path === path);
    this.show(found.text, path, sets);
  }

  /** Shows a scenario; `sets` are fields to change, each with its new value, as `--set` does. */
  show(text, path, sets = []) {
    this.path = path;
    this.given = sets;
    $("notice").hidden = true;
    if (!this.busy) this.say("");
    $("scenarios").value = this.catalogue.scenarios.some((one) => one.path === path && one.text === text) ? path : "";
    this.adopt();
    this.editor.replace(text);
    this.changed();
  }

  get folder() {
    return this.path.slice(0, this.path.lastIndexOf("/"));
  }

  /** Puts the user's files beside the scenario. */
  adopt() {
    return this.engine.add(Object.fromEntries(Object.entries(this.own).map(([name, content]) => [`${this.folder}/${name}`, content]))).catch(() => {});
  }

  /** Sets a field, as `--set` does. */
  set(words) {
    const [path, value] = words.split(/=(.*)/s).map((part) => part?.trim());
    if (!path || !value) return this.say("A field is set as PATH=VALUE, such as links.uplink.delay=50ms.");
    this.given = [...this.given.filter((one) => one[0] !== path), [path, value]];
    $("set-field").value = "";
    return this.check();
  }

  say(words) {
    $("state").textContent = words;
  }

  /** Says that the result is of another scenario, if it is. */
  compare() {
    const { study } = this.made ?? {};
    const same = !study || study.results || (study.text === this.editor.text && JSON.stringify(study.sets) === JSON.stringify(this.sets));
    $("outdated").hidden = same;
  }

  changed() {
    this.compare();
    $("numbers").value = "";
    this.pick();
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.keep();
      this.check();
    }, CHECK_MS);
  }

  /** Loads the present text: what it is, or null with its problems shown. */
  async load(sets = []) {
    const text = this.editor.text;
    // Memory of a module does not shrink.
    if (this.engine.memory > MOST_KEPT) this.engine.stop();
    // Compiling the engine takes its time on a busy machine, and is not stuck.
    await this.engine.ready;
    const stuck = setTimeout(() => this.engine.stop(new Error("the engine did not answer and was started again; try again, or use the command")), STUCK_MS);
    try {
      const request = { do: "load", path: this.path, text, sets };
      let found = await this.engine.ask(request);
      if (found.needs_models && (await this.models(stuck))) found = await this.engine.ask(request);
      this.problems(found.problems ?? []);
      this.loaded = found.problems ? null : { ...found, text, sets };
      this.engine.loaded = this.loaded;
      if (this.loaded) this.offer(found.numbers);
      this.compare();
    } finally {
      clearTimeout(stuck);
    }
    return this.loaded;
  }

  /** Replaces the engine by the one with the models of Opus. Returns whether this was possible. */
  async models(stuck) {
    if (embedded("engine") || this.modelled) return false;
    this.modelled = true;
    clearTimeout(stuck);
    this.say("Loading the models of Opus: 6 MB");
    const module = compiled("models", "models.wasm.gz");
    try {
      await module;
    } catch {
      this.modelled = false;
      return false;
    }
    this.engine.module = module;
    this.engine.stop(new Error("the engine was replaced"));
    this.say("");
    return true;
  }

  async check() {
    this.unchecked = this.busy;
    if (this.busy) return;
    try {
      const found = await this.load(this.given);
      const count = $("problems").querySelectorAll("li").length;
      if (!found) this.say(`The scenario has ${count === 1 ? "an error, which is" : `${count} errors, which are`} listed below the editor.`);
      else if ($("state").textContent.startsWith("The scenario has")) this.say("Ready to run.");
    } catch (error) {
      this.say(`The scenario cannot be read: ${error.message}.`);
    }
  }

  problems(found) {
    this.editor.show(found);
    const list = found.map(({ line, path, message, hint }) => {
      const missing = message.includes("no such file") ? " – add it with “Add files”; links do not carry files" : "";
      const words = `${path ? `${path}: ` : ""}${message}${hint ? ` – ${hint}` : missing}`;
      if (!line) return element("li", {}, words);
      const place = element("button", { type: "button" }, `line ${line}`);
      place.addEventListener("click", () => this.editor.goTo(line));
      return element("li", {}, place, ` ${words}`);
    });
    $("problems").replaceChildren(...(list.length ? [element("ul", {}, list)] : []));
    $("run").disabled = list.length > 0 || this.busy;
  }

  command() {
    const sets = this.sets.map(([path, value]) => ` --set '${path}=${value}'`).join("");
    $("command").textContent = `talkspurt run ${this.name}${sets}`;
    $("given").replaceChildren(...this.given.map((set) => {
      const words = `${set[0]} = ${set[1]}`;
      const drop = element("button", { type: "button", "aria-label": `Do not set ${words}`, title: "Do not set it" }, `${words} ✕`);
      drop.addEventListener("click", () => {
        this.given = this.given.filter((one) => one !== set);
        this.check();
      });
      return drop;
    }));
  }

  // The slider.

  /** The numbers that the slider can change. */
  offer(numbers) {
    const { value } = $("numbers");
    // Those of the network first: they are what differs between users.
    const sorted = [...numbers].sort((one, other) => other.path.startsWith("links.") - one.path.startsWith("links."));
    $("numbers").replaceChildren(element("option", { value: "" }, "choose a number"),
      ...sorted.map(({ path, text }) => element("option", { value: path }, `${path} = ${text}`)));
    $("numbers").value = numbers.some(({ path }) => path === value) ? value : "";
    this.command();
  }

  pick() {
    const path = $("numbers").value;
    const found = this.loaded?.numbers.find((one) => one.path === path);
    $("slider").disabled = !found;
    $("slider").value = 500;
    this.number = found;
    $("number").textContent = found ? found.text : "";
    this.slid = [];
    $("tried").replaceChildren();
    this.command();
  }

  /** Notes what a value of the slider gave, so that values can be compared. */
  note(sentence) {
    if (!this.slid.length) return;
    const [[, value]] = this.slid;
    const known = [...$("tried").children].find((one) => one.dataset.value === value);
    const made = element("li", { "data-value": value }, element("b", {}, value), `: ${sentence ?? "nothing to compare"}`);
    if (known) known.replaceWith(made);
    else $("tried").append(made);
    if ($("tried").children.length > MOST_TRIED) $("tried").firstChild.remove();
  }

  get sets() {
    return [...this.given, ...this.slid];
  }

  slide() {
    const [, digits, unit] = this.number.text.match(/^([0-9.]+)\s*(.*)$/) ?? [null, "0", ""];
    const whole = !unit && !digits.includes(".");
    const value = Number(digits) * SLIDER ** (2 * (Number($("slider").value) / 1000) - 1);
    const shown = whole ? Math.round(value) : Number(value.toPrecision(3));
    const text = `${shown}${unit}`;
    $("number").textContent = text;
    $("slider").setAttribute("aria-valuetext", text);
    this.slid = [[this.number.path, text]];
    this.command();
    this.again = true;
    if (!this.busy) this.run({ quiet: true });
  }

  // Runs.

  /** Does something that can be stopped, unless something else is being done. */
  async busily(what, failed) {
    if (this.busy) return;
    const focused = document.activeElement;
    this.busy = true;
    $("run").disabled = true;
    $("stop").disabled = false;
    try {
      await what();
    } catch (error) {
      this.say(error.message === "stopped" ? "Stopped." : `${failed}: ${error.message}.`);
    }
    this.busy = false;
    $("progress").hidden = true;
    $("stop").disabled = true;
    $("run").disabled = $("problems").hasChildNodes();
    // A button that is disabled loses the focus.
    if (document.activeElement === document.body) focused.focus({ preventScroll: true });
    if (!this.unchecked) return;
    // Loading what is shown already would only take its tables away.
    this.unchecked = false;
    this.compare();
    if (!$("outdated").hidden) await this.check();
  }

  run({ quiet = false, anyway = false, scroll = false } = {}) {
    // Where the result is below the scenario.
    if (scroll && matchMedia("(max-width: 70rem)").matches) $("state").scrollIntoView();
    return this.busily(async () => {
      do {
        this.again = false;
        await this.once(quiet, anyway);
      } while (this.again);
    }, "The run ended");
  }

  /** Shows a results folder, of which these are the files. */
  results(files) {
    return this.busily(async () => {
      this.say("Reading the results");
      const results = new TalkspurtResults.Results(await files);
      const { study, request } = await results.read();
      this.engine.loaded = null;
      await this.engine.ask(request);
      for (let number = 0; number < study.runs.length; number++) {
        await this.engine.ask({ do: "tables", run: number, parquet: await results.tables(number, "answer") });
        $("progress").hidden = false;
        $("progress").value = (number + 1) / study.runs.length;
      }
      const all = await this.engine.ask({ do: "answer" });
      await this.open(0, { study: { ...study, results, request }, all });
      this.say(`Results of ${study.title}, from a folder. Nothing was run.`);
    }, "The results cannot be shown");
  }

  async once(quiet, anyway) {
    const study = await this.load(this.sets);
    if (!study) return this.say("The scenario has errors: they are listed below the editor.");
    const count = study.runs.length;
    if (count > MOST_RUNS) return this.fewer(study);
    if (study.flows > MOST_FLOWS) return this.say(`These are ${counted(study.flows)} flows; a page simulates at most ${counted(MOST_FLOWS)}. Use the command.`);
    const began = performance.now();
    if (!quiet) this.say(count > 1 ? `Running 1 of ${count}` : "Running");
    $("progress").hidden = false;
    for (let number = 0; number < count; number++) {
      this.part = { number, count };
      const most_s = anyway ? undefined : LONG_S / count;
      const made = await this.engine.ask({ do: "run", run: number, most_s });
      if (made.long_s) return this.long(made.long_s * count);
      if (this.again) return null;
      if (count > 1) this.say(`Running ${number + 1} of ${count}`);
    }
    const all = await this.engine.ask({ do: "answer" });
    await this.open(0, { study, all });
    this.note(all.answer.sentences[0]);
    const what = count > 1 ? `${count} runs of ${study.duration_s} s` : `${study.duration_s} s`;
    return this.say(`Simulated ${what} in ${((performance.now() - began) / 1000).toFixed(1)} s.`);
  }

  /** Offers parts of a study that has too many runs for a page. */
  fewer({ runs, replications }) {
    const offer = (words, sets) => {
      const go = element("button", { type: "button" }, words);
      go.addEventListener("click", () => {
        this.given = [...this.given, ...sets];
        this.run();
      });
      return go;
    };
    const once = runs.length / replications;
    const parts = [
      once <= MOST_RUNS ? [offer(`One seed of each setting (${counted(once)} runs)`, [["replications.count", "1"]]), " "] : [],
      offer("The first setting", [["axes", "[]"], ["replications.count", "1"]]),
    ];
    $("state").replaceChildren(`These are ${counted(runs.length)} runs; a page makes at most ${MOST_RUNS}, the command all of them. `, ...parts.flat());
  }

  long(seconds) {
    const go = element("button", { type: "button" }, "Run it here anyway");
    go.addEventListener("click", () => this.run({ anyway: true }));
    $("state").replaceChildren(`This would take about ${time(seconds)} here; the command is two to five times as fast. `, go);
  }

  watch({ progress, left_s }) {
    if (!this.part) return;
    const { number, count } = this.part;
    $("progress").value = (number + progress) / count;
    if (count === 1 && left_s > 3) this.say(`Running, ${time(left_s)} left`);
  }

  /** Shows a run, with the answer of all. */
  async open(number, { study, all }) {
    if (study.results) {
      await this.engine.ask(study.request);
      await this.engine.ask({ do: "tables", run: number, parquet: await study.results.tables(number, "all") });
    }
    const run = await this.engine.ask({ do: "open", run: number });
    if (study.results) run.sounds = await study.results.sounds(number, run.calls);
    this.made = { study, all, run, number };
    $("title").textContent = study.title;
    $("about-scenario").hidden = !study.description;
    $("description").innerHTML = TalkspurtMarkdown.html(study.description);
    document.title = `${study.title} – talkspurt playground`;
    this.drawAnswer(all);
    this.drawStudy(number);
    this.drawRun(run);
    this.compare();
    $("download-results").disabled = false;
    $("result").hidden = false;
    performance.mark("answer");
    return document.documentElement.setAttribute("data-result", run.digest ?? "");
  }

  drawAnswer({ answer: { sentences, about, notes }, cautions }) {
    const rest = [about, ...notes].filter(Boolean);
    $("answer").replaceChildren(element("h2", {}, "Result"), ...sentences.map((words) => element("p", { class: "answer" }, words)),
      ...[rest.length ? element("details", {}, element("summary", {}, `${rest.length} more sentence${rest.length > 1 ? "s" : ""}`), rest.map((words) => element("p", {}, words))) : "",
      cautions.length ? [element("h3", {}, "Warnings"), element("ul", {}, cautions.map((words) => element("li", {}, words)))] : ""].flat());
  }

  drawStudy(opened) {
    const { study, all } = this.made;
    $("study").hidden = !study.axes.length && study.replications < 2;
    if ($("study").hidden) return $("study").replaceChildren();
    const number = (row) => study.runs.findIndex(({ settings, replicate }) => replicate === 0 && settings.every((label, i) => label === row.texts[i]));
    const open = (row, text) => {
      const made = element("button", { type: "button", title: "Show and play this run" }, text);
      made.addEventListener("click", () => this.reopen(number(row)));
      return made;
    };
    $("study").replaceChildren(element("h2", {}, "All settings"), ...this.plot(), ...table(`Means of all runs${study.replications > 1 ? `, ± half of their ${Math.round(100 * study.confidence)} % intervals` : ""}; a name opens its run`, all.table, open).filter(Boolean));
    const rows = $("study").querySelectorAll("tbody tr");
    all.table.rows.forEach((row, i) => number(row) === opened && rows[i].setAttribute("aria-current", "true"));
    return null;
  }

  /** A measure over the first axis, with a choice of measures. */
  plot() {
    const { study, all } = this.made;
    const there = all.table.columns.map((_, i) => i).filter((i) => all.table.rows.some(({ cells }) => cells[i].value !== null));
    if (!study.axes.length || !there.length) return [];
    const chart = element("talkspurt-chart");
    const choice = element("select", {}, there.map((i) => element("option", { value: i }, capital(all.table.columns[i].label))));
    const draw = () => (chart.chart = this.over(Number(choice.value)));
    choice.addEventListener("change", draw);
    draw();
    return [element("div", { class: "controls" }, element("label", {}, "Plot ", choice)), chart];
  }

  /** The chart of a column of the table over the first axis. */
  over(number) {
    const { study, all } = this.made;
    const [axis, ...others] = study.axes;
    const column = all.table.columns[number];
    const lines = new Map();
    for (const { texts, style, cells } of all.table.rows) {
      const label = [texts[study.axes.length], ...others.map((_, i) => texts[i + 1])].join(" · ");
      if (!lines.has(label)) lines.set(label, { label, ...style, background: style.in_background, points: [] });
      const place = axis.labels.indexOf(texts[0]);
      lines.get(label).points.push([axis.numbers?.[place] ?? place, cells[number]]);
    }
    const drawn = [...lines.values()].map(({ points, ...line }) => {
      points.sort((one, other) => one[0] - other[0]);
      return { ...line, x: points.map(([x]) => x), values: points.map(([, cell]) => cell.value), halves: points.map(([, cell]) => cell.half) };
    });
    return {
      name: "study", title: `${capital(column.label)} over ${axis.name}`, unit: column.unit,
      panels: [{ title: "", lines: drawn.filter(({ values }) => values.some((value) => value !== null)) }],
      over: { label: axis.name, unit: "", values: axis.numbers ? undefined : axis.labels },
    };
  }

  reopen(number) {
    const { study, all } = this.made;
    return this.busily(async () => {
      // The scenario may have been changed since.
      if (!study.results) await this.engine.ask({ do: "load", path: this.path, text: study.text, sets: study.sets });
      await this.open(number, { study, all });
      $("calls").scrollIntoView({ block: "nearest" });
      $("calls").querySelector(".wide")?.focus({ preventScroll: true });
    }, "The run cannot be shown");
  }

  /** The network, and its packets when they are asked for: the run is repeated for them. */
  drawNetwork(picture) {
    $("network").hidden = !picture;
    $("network").innerHTML = picture?.svg ?? "";
    $("routes").replaceChildren(...(picture?.key ?? []).map((line) => element("li", {}, swatch(line), `${line.words} – ${line.transport}, ${line.ends}`)));
    $("packets").open = false;
    $("packets").hidden = !picture || Boolean(this.made.study.results);
  }

  async drawPackets() {
    const { study, number } = this.made;
    const packets = document.querySelector("talkspurt-packets");
    if (!$("packets").open || packets.of === this.made) return;
    await this.busily(async () => {
      this.say("Running again, up to the end of the packets shown");
      if (this.engine.loaded !== study) await this.engine.ask({ do: "load", path: this.path, text: study.text, sets: study.sets });
      const { animation } = await this.engine.ask({ do: "animation", run: number });
      const none = typeof animation === "string";
      $("packets-lead").textContent = none ? `No animation of packets: ${animation}` : animation.lead;
      packets.hidden = none;
      packets.of = this.made;
      if (!none) packets.show({ ...animation.data, worlds: animation.worlds, first: animation.first });
      this.say("");
    }, "The packets cannot be shown");
  }

  drawRun({ tables, charts, calls, sounds, fates, settings, resolved, picture }) {
    $("resolved").textContent = resolved;
    this.drawNetwork(picture);
    const { study } = this.made;
    const named = settings.map((label, i) => `${study.axes[i].name} = ${label}`).join(", ");
    const seeds = study.replications > 1 ? ` (the first of ${study.replications} seeds)` : "";
    const of = named || seeds ? `Calls${named ? ` with ${named}` : ""}${seeds}` : "Calls";
    $("calls").replaceChildren(...(tables.calls.rows.length ? table(of, tables.calls).filter(Boolean) : []));
    const recordings = [];
    const signals = [];
    const add = (samples, rate, channels) => {
      const mono = channels === 2 ? samples.filter((_, i) => i % 2 === 0) : samples;
      const known = recordings.findIndex((one) => one.rate === rate && one.samples.length === mono.length && one.samples.every((value, i) => value === mono[i]));
      return known >= 0 ? known : recordings.push({ rate, samples: mono }) - 1;
    };
    for (const { flow, sent, rate, channels } of sounds) {
      const recording = add(sent, rate, channels);
      if (!signals.some((one) => one.recording === recording)) signals.push({ name: signals.length ? `reference of ${flow}` : "reference", recording, chosen: true });
    }
    calls.forEach(({ name, transport, colour, fates: frames }, place) => {
      const sound = sounds.find(({ flow }) => flow === name);
      const units = frames.reduce((sum, [, count]) => sum + count, 0);
      const seconds = sound ? sound.received.length / sound.channels / sound.rate : 0;
      signals.push({
        name, title: name, over: transport, colour, fates: frames, chosen: place < 6,
        recording: sound ? add(sound.received, sound.rate, sound.channels) : null,
        frame_s: sound ? seconds / units : null,
        silence: sound ? "" : sounds.left?.includes(name) ? sounds.limited : "No audio: the source of this call has no recording (file).",
      });
    });
    const player = document.querySelector("talkspurt-player");
    player.hidden = !signals.length;
    if (signals.length) player.show({ signals, recordings, colours: Object.fromEntries(fates) });
    $("charts").replaceChildren(...charts.map((chart) => Object.assign(element("talkspurt-chart"), { chart })));
    $("tables").replaceChildren(...[...table("Flows", tables.flows), ...table("Links", tables.links)].filter(Boolean));
  }

  // What comes from and goes to the user.

  async take(files) {
    const { folder } = this;
    for (const file of files) {
      const isScenario = file.name.endsWith(".toml");
      if (file.size > (isScenario ? MOST_TEXT : MOST_FILE)) {
        this.say(`${file.name} is too large for a page: use the command.`);
      } else if (isScenario) {
        this.show(await file.text(), `${folder}/${file.name}`);
      } else {
        const read = await file.arrayBuffer().catch(() => null);
        if (!read) {
          this.say(`${file.name} cannot be read.`);
          continue;
        }
        const content = new Uint8Array(read);
        this.own[file.name] = content;
        await this.adopt();
        $("files-list").hidden = false;
        $("files-list").replaceChildren(`Added: ${Object.keys(this.own).join(", ")}. `, ...this.use(file.name, content));
      }
    }
    this.changed();
  }

  /** Says what an added file is used for. What is dropped is to be heard: it replaces the recordings of the scenario. */
  use(name, content) {
    const quoted = JSON.stringify(name);
    if (/\.wav$/i.test(name)) {
      let count = 0;
      this.editor.replace(this.editor.text.replace(/(\bfile\s*=\s*)"[^"\n]*\.wav"/gi, (_, key) => (count++, `${key}${quoted}`)));
      return [count ? `${name} replaces the recordings of this scenario: run it.` : `Name it in the source of a call: file = ${quoted}.`];
    }
    const kind = /^[\d\s]*$/.test(new TextDecoder().decode(content.subarray(0, 99))) ? "mahimahi" : "csv";
    const trace = `{ kind = "${kind}", file = ${quoted} }`;
    const links = new Set(this.loaded?.numbers.map(({ path }) => path.match(/^links\.("[^"]*"|[^.]+)\./)?.[1]).filter(Boolean));
    const offers = [...links].slice(0, MOST_OFFERED).map((link) => {
      const made = element("button", { type: "button" }, link);
      made.addEventListener("click", () => this.set(`links.${link}.trace=${trace}`));
      return [" ", made];
    });
    return [
      "Make it the trace of a link", ...(offers.length ? [":", ...offers.flat(), " or write"] : [","]), " ", element("code", {}, `trace = ${trace}`), " in its table.",
      " It serves both directions, unless ", element("code", {}, `back = { trace = { kind = …, file = … } }`), " names another one for the way back.",
    ];
  }

  async share() {
    const hash = `#s=${await packed({ path: this.path, text: this.editor.text, sets: this.sets })}`;
    history.replaceState(null, "", hash);
    const where = location.protocol === "file:" ? " It opens this file, so that others need the file, too." : "";
    const files = Object.keys(this.own).length ? " Files that you added are not in it." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      this.say(`The link is copied.${files}${where}`);
    } catch {
      this.say(`The link is in the address bar.${files}${where}`);
    }
  }

  /** The name of the scenario as a file: one of its own if it was changed. */
  get name() {
    const known = this.catalogue.scenarios.find((one) => one.path === this.path);
    const name = this.path.split("/").at(-1) || "scenario.toml";
    return known && known.text !== this.editor.text ? `my-${name}` : name;
  }

  save(name, type, text) {
    const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  /** The scenario; what is set beside its text is in a comment. */
  download() {
    const { study, run } = this.made ?? {};
    const sets = this.sets.length ? `# ${$("command").textContent}\n` : "";
    this.save(study?.results ? "scenario.toml" : this.name, "application/toml", study?.results ? run.resolved : sets + this.editor.text);
  }

  /** The answer, the tables and all columns of flows and links of the shown run. */
  downloadResults() {
    const { study, all, run } = this.made;
    const { sounds: _, charts: __, picture: ___, columns, ...rest } = run;
    const content = { title: study.title, sets: study.sets, ...all, run: { ...rest, ...columns } };
    this.save(this.name.replace(/(\.toml)?$/, ".json"), "application/json", JSON.stringify(content, null, 1));
  }
}

async function begin() {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function" || typeof DecompressionStream !== "function") {
    $("state").textContent = "This browser lacks WebAssembly, workers or compressed streams, which the playground needs. Use a current browser, or the command.";
    $("run").disabled = true;
    return;
  }
  try {
    $("state").textContent = "Loading the engine";
    let page = null;
    const engine = new Engine(asked.module, (told) => page?.watch(told));
    const { data, contents } = unfolded(await read((await asked.data).pipeThrough(new DecompressionStream("gzip")), Infinity));
    await asked.module;
    page = new Playground(data, engine);
    globalThis.playground = page;
    await engine.add(Object.fromEntries(Object.entries(data.files).map(([path, number]) => [path, contents[number]])));
    await page.follow();
    page.say("");
    document.documentElement.dataset.playground = "ready";
    await page.run();
  } catch (error) {
    $("state").textContent = `The playground cannot start: ${error.message}.`;
  }
}

begin();
