// The editor of a scenario: TalkspurtEditor.editor(parent, { text, schema, label, changed, files }), of CodeMirror 6.
// It returns
//
//   text             the text of the scenario
//   replace(text)    replaces all of it; undo brings the old one back
//   show(problems)   marks problems: { line, path, message, hint }; without a line at the first
//   goTo(line)       moves the cursor to a line
//   focus()
//
// `changed` is called with the text at every change by the user. Keys and values are completed and
// explained from `schema`, the JSON Schema of a scenario. Colours are variables of the page, as in
// report.css. `files` returns the names of files that a `file` may name. Tab is not bound: who edits by keyboard gets out of the editor by it.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState } from "@codemirror/state";
import {
  drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, hoverTooltip, keymap, lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import {
  allowed, alternatives, child, descriptionOf, firstSentence, isTable, keysOf, limitsOf, typeOf, valuesOf,
} from "./schema.js";
import { place } from "./toml.js";

const byProgram = Annotation.define();

// A variable of the page, or the colours of report.css where the page has none.
const colour = (name, light, dark) => `var(--${name}, light-dark(${light}, ${dark}))`;
const PAPER = colour("paper", "#fcfcfa", "#16191c");
const CARD = colour("card", "#ffffff", "#1d2125");
const CODE = colour("code", "#f3f4f3", "#22272b");
const INK = colour("ink", "#24292e", "#e3e6e8");
const QUIET = colour("quiet", "#646c75", "#98a1aa");
const RULE = colour("rule", "#e2e4e6", "#33393f");
const FIELD = colour("field", "#8a939c", "#78828c");
const ACCENT = colour("accent", "#0b5c8a", "#7cc4ee");
const GOOD = colour("good", "#0d7a55", "#4fc79b");
const FAIR = colour("fair", "#8a6100", "#e0b23c");
const BAD = colour("bad", "#b3400a", "#f08a4b");
const MONO = 'ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const UNDERLINE = { backgroundImage: "none", textDecoration: `underline wavy ${BAD}`, textUnderlineOffset: "3px" };

const theme = EditorView.theme({
  "&": { color: INK, backgroundColor: PAPER, height: "100%", fontSize: ".86rem" },
  "&.cm-focused": { outline: `2px solid ${ACCENT}`, outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: MONO, lineHeight: "1.5" },
  ".cm-content": { caretColor: INK },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: INK, borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: PAPER, color: QUIET, borderRight: `1px solid ${RULE}` },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: `color-mix(in srgb, ${ACCENT} 6%, transparent)` },
  ".cm-activeLineGutter": { color: INK },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: `color-mix(in srgb, ${ACCENT} 22%, ${PAPER})`,
  },
  ".cm-selectionMatch": { backgroundColor: `color-mix(in srgb, ${FAIR} 15%, transparent)` },
  ".cm-searchMatch": { backgroundColor: "transparent", outline: `1px solid ${FAIR}` },
  ".cm-searchMatch-selected": { backgroundColor: `color-mix(in srgb, ${FAIR} 20%, transparent)`, outlineWidth: "2px" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: `1px solid ${FIELD}` },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent", outline: `1px solid ${BAD}` },
  ".cm-lintRange-error": UNDERLINE,
  ".cm-lintPoint-error:after": { borderBottomColor: BAD },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 .15em" },
  ".cm-lint-marker-error": { content: "none", width: "auto", height: "auto", color: BAD, fontWeight: "700", textAlign: "center" },
  ".cm-lint-marker-error::before": { content: '"!"' },
  ".cm-diagnostic": { borderLeft: `4px solid ${BAD}`, padding: ".3em .6em", maxWidth: "40rem", whiteSpace: "pre-wrap" },
  ".cm-tooltip, .cm-tooltip.cm-tooltip-autocomplete, .cm-tooltip .cm-completionInfo": {
    color: INK, backgroundColor: CARD, border: `1px solid ${FIELD}`, borderRadius: "4px",
  },
  ".cm-tooltip-autocomplete > ul > li": { lineHeight: "1.5" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected], .cm-panel.cm-panel-lint ul [aria-selected]": {
    color: CARD, backgroundColor: ACCENT,
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { color: CARD, background: ACCENT },
  ".cm-completionIcon": { display: "none" },
  ".cm-completionDetail": { color: QUIET, fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-tooltip .cm-about, .cm-tooltip .cm-completionInfo": { fontFamily: "system-ui, sans-serif", fontSize: ".86rem", lineHeight: "1.4" },
  ".cm-about": { padding: ".4em .7em", maxWidth: "30rem" },
  ".cm-completionInfo .cm-about": { padding: "0" },
  ".cm-about p": { margin: "0 0 .3em" },
  ".cm-about code": { fontFamily: MONO },
  ".cm-about ul": { margin: "0", padding: "0", listStyle: "none", color: QUIET },
  ".cm-panels": { color: INK, backgroundColor: CARD, fontFamily: "system-ui, sans-serif" },
  ".cm-panels.cm-panels-top, .cm-panels.cm-panels-bottom": { borderColor: RULE },
  ".cm-panel.cm-search": { padding: ".5em 2em .5em .6em" },
  ".cm-panel.cm-search [name=close]": { color: INK, fontSize: "1.2em", top: ".3em", right: ".5em" },
  ".cm-textfield, .cm-button": {
    color: INK, background: PAPER, border: `1px solid ${FIELD}`, borderRadius: "4px", fontSize: ".86rem",
  },
  ".cm-button:active": { background: CODE },
});

// Contrasts of at least 4.5 : 1 on the paper, in both schemes: those of text in report.css.
const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: ACCENT },
  { tag: tags.string, color: GOOD },
  { tag: [tags.number, tags.bool], color: FAIR },
  { tag: tags.heading, color: INK, fontWeight: "700" },
  { tag: tags.comment, color: QUIET, fontStyle: "italic" },
]);

// The mode has one name, "atom", for headers, dates and booleans, and no names for keys of inline tables.
const language = StreamLanguage.define({
  ...toml,
  token: (stream, state) => {
    if (!state.inString && !state.lhs && stream.match(/^[\w-]+(?=\s*=)/)) return "propertyName";
    const begins = state.lhs || (stream.sol() && !state.inArray);
    const header = begins && !state.inString && stream.peek() === "[";
    const token = toml.token(stream, state);
    if (token !== "atom") return token === "property" ? "propertyName" : token;
    return header ? "heading" : "bool";
  },
  languageData: { ...toml.languageData, closeBrackets: { brackets: ["[", "{", '"'] } },
});

const element = (name, ...inside) => {
  const made = document.createElement(name);
  made.append(...inside);
  return made;
};

// Text with `code` in it.
const prose = (text) => text.split("`").map((part, i) => (i % 2 ? element("code", part) : part));

const about = (title, text, lines) => {
  const box = element("div");
  box.className = "cm-about";
  if (title) box.append(element("p", element("strong", element("code", title[0])), ` ${title[1]}`));
  if (text) box.append(element("p", ...prose(text)));
  if (lines.length) box.append(element("ul", ...lines.map((line) => element("li", line))));
  return box;
};

// What is known of a key: its type, its description, its limits, and its values where they can be listed.
const explained = (schema, key, held, tables) => {
  const values = valuesOf(schema, key, held, tables);
  const listed = held.some((node) => node.type === "boolean") ? [] : values;
  return {
    type: typeOf(schema, held),
    text: descriptionOf(schema, held),
    lines: [...(listed.length > 1 ? [`values: ${listed.map(({ text }) => text).join(", ")}`] : []), ...limitsOf(schema, held)],
    values,
  };
};

// The schemas of the last key of a path, and the alternatives of the table that holds it.
const lookUp = (schema, path, tables) => {
  const key = path.at(-1);
  const holders = allowed(schema, path.slice(0, -1), tables, key);
  return { key, holders, held: holders.map((node) => child(node, key)).filter(Boolean) };
};

// Replaces a range, and puts the cursor `back` characters before the end of what was put there.
const put = (view, from, to, text, back, more) => {
  view.dispatch({
    changes: { from, to, insert: text }, selection: { anchor: from + text.length - back }, scrollIntoView: true,
    userEvent: "input.complete",
  });
  if (more) startCompletion(view);
};

// What to put for a key: what follows it goes with it, such as quotes around the cursor.
const withValue = (schema, { key, held }, values, top) => {
  const nodes = held.flatMap((node) => alternatives(schema, node));
  const list = held.some((node) => node.type === "array");
  const tables = nodes.some(isTable);
  const named = tables && nodes.every((node) => !node.properties);
  if (top && named) return [`[${key}.]`, 1, false];
  if (top && tables && list) return [`[[${key}]]\n`, 0, true];
  if (list) return [`${key} = []`, 1, values.length > 0];
  if (tables) return [`${key} = {  }`, 2, !named];
  if (values.length) return [`${key} = `, 0, true];
  return nodes.some((node) => node.type === "string") ? [`${key} = ""`, 1, key === "file"] : [`${key} = `, 0, false];
};

const keyOptions = (schema, { from, to, path, tables, written, assigned }) => {
  const holders = allowed(schema, path, tables);
  return keysOf(holders).filter(({ key }) => key === written || !tables.at(-1).has(key)).map((one) => {
    const { type, text, lines, values } = explained(schema, one.key, one.held, holders);
    const initial = lines.find((line) => line.startsWith("default: "));
    return {
      label: one.key,
      detail: [type, one.required ? "required" : initial?.slice(9)].filter(Boolean).join(", "),
      boost: one.required ? 1 : 0,
      info: () => about(null, firstSentence(text), lines),
      apply: assigned ? one.key : (view) => put(view, from, to, ...withValue(schema, one, values, !path.length)),
    };
  });
};

const valueOptions = (schema, { path, tables, item }, files) => {
  const { key, holders, held } = lookUp(schema, path, tables);
  if (key === "file") return files().map((name) => ({ label: JSON.stringify(name), detail: "your file" }));
  const fitting = held.filter((node) => (node.type === "array") === Boolean(item));
  return valuesOf(schema, key, fitting, holders).map(({ text, info, isDefault }) => ({
    label: text, detail: isDefault ? "default" : "", boost: isDefault ? 1 : 0, info: info ? () => about(null, info, []) : null,
  }));
};

const headerOptions = (schema, doc, { from, path, tables, written, header }) => {
  const holders = allowed(schema, path, tables);
  const whole = (key, double, dot) => (view) => {
    const before = doc.slice(header.from + (header.double ? 2 : 1), from);
    const [open, close] = double ? ["[[", "]]"] : ["[", "]"];
    put(view, header.from, header.to, `${open}${before}${key}${dot}${close}`, dot ? close.length : 0, Boolean(dot));
  };
  const keys = keysOf(holders).flatMap(({ key, held }) => {
    const nodes = held.flatMap((node) => alternatives(schema, node)).filter(isTable);
    const list = held.some((node) => node.type === "array");
    const named = nodes.every((node) => !node.properties);
    if (!nodes.length || (!list && !named && key !== written && tables.at(-1).has(key))) return [];
    const { type, text } = explained(schema, key, held, holders);
    return [{
      label: key, detail: type, info: () => about(null, firstSentence(text), []), apply: whole(key, list, named ? "." : ""),
    }];
  });
  // Names that are there already, to add a table to one of them.
  const names = holders.some((node) => !node.properties) ? [...tables.at(-1).keys()] : [];
  return [
    ...keys,
    ...names.filter((name) => name && name !== written).map((label) => ({ label, apply: whole(label, false, ".") })),
  ];
};

const completion = (schema, files) => (context) => {
  const doc = context.state.doc.toString();
  const { here } = place(doc, context.pos);
  // What is there unasked would take an Enter that was meant for a new line.
  if (!here || (here.what !== "header" && here.from === here.to && !context.explicit)) return null;
  if (here.what === "header") {
    const options = headerOptions(schema, doc, here);
    return { from: here.from, to: here.to, options, validFor: /^[\w-]*$/ };
  }
  if (here.what === "key") {
    return { from: here.from, to: here.to, options: keyOptions(schema, here), validFor: /^[\w-]*$/ };
  }
  // A string without its end reaches up to the end of the line: only what is before the cursor is replaced.
  const written = doc.slice(here.from, here.to);
  const open = /^["']/.test(written) && (written.length < 2 || written.at(-1) !== written[0]);
  // A quote alone matches nothing.
  const empty = written === '""' || written === "''";
  return {
    filter: !empty, from: here.from, to: open ? context.pos : here.to, options: valueOptions(schema, here, files), validFor: empty ? undefined : /^"?[^"\s,\]}]*"?$/,
  };
};

const hover = (schema) => hoverTooltip((view, pos) => {
  const doc = view.state.doc.toString();
  const { here } = place(doc, pos);
  if (!here || here.from === here.to) return null;
  const tooltip = (box) => ({ pos: here.from, end: here.to, above: true, create: () => ({ dom: box }) });
  if (here.what === "value") {
    const { key, holders, held } = lookUp(schema, here.path, here.tables);
    const value = valuesOf(schema, key, held, holders).find(({ text }) => text === doc.slice(here.from, here.to));
    return value?.info ? tooltip(about([value.text, ""], value.info, [])) : null;
  }
  const { key, holders, held } = lookUp(schema, [...here.path, here.written], here.tables);
  if (!held.length) return null;
  const { type, text, lines } = explained(schema, key, held, holders);
  return tooltip(about([key, type], text, lines));
});

const diagnostic = (doc) => ({ line, path, message, hint }) => {
  const at = doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines));
  const before = at.text.length - at.text.trimStart().length;
  const [from, to] = [at.from + (at.text.trim() ? before : 0), at.from + at.text.trimEnd().length];
  const text = `${path ? `${path}: ` : ""}${message}${hint ? ` (${hint})` : ""}`;
  return { from, to: Math.max(from, to), severity: "error", message: text };
};

const editor = (parent, { text = "", schema, label, changed, files = () => [] }) => {
  const view = new EditorView({
    parent,
    doc: text,
    extensions: [
      lintGutter(), lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), drawSelection(), history(),
      EditorView.lineWrapping, EditorState.tabSize.of(2), bracketMatching(), closeBrackets(), search({ top: true }),
      highlightSelectionMatches(), language, syntaxHighlighting(colours), theme,
      schema ? [autocompletion({ override: [completion(schema, files)], icons: false }), hover(schema)] : [],
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      EditorView.contentAttributes.of({ tabindex: "0", ...(label ? { "aria-label": label } : {}) }),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged || update.transactions.some((one) => one.annotation(byProgram))) return;
        changed?.(update.state.doc.toString());
      }),
    ],
  });
  return {
    get text() { return view.state.doc.toString(); },
    replace: (all) => {
      const state = view.state;
      if (state.doc.toString() === all) return;
      view.dispatch({
        changes: { from: 0, to: state.doc.length, insert: all },
        selection: { anchor: 0 },
        annotations: [byProgram.of(true), isolateHistory.of("full")],
        scrollIntoView: true,
      });
    },
    show: (problems) => {
      const found = problems.map(diagnostic(view.state.doc)).sort((one, other) => one.from - other.from);
      view.dispatch(setDiagnostics(view.state, found));
    },
    goTo: (line) => {
      const { from } = diagnostic(view.state.doc)({ line, message: "" });
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
  };
};

globalThis.TalkspurtEditor = { editor };
