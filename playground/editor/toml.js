// Where a place in a scenario is: a reader of TOML that forgives what is half typed. It reads the whole
// text, since keys after the cursor count too, and never fails: a string ends at its line, an inline table
// at the end of its line, a list where a line begins with a header or a key.

const AFTER_LIST = /^\s*(\[\[?\s*[A-Za-z_][\w.\s"-]*\]{0,2}\s*(#.*)?$|[\w."-]+\s*=)/;

// The table or value of a key; of a list of tables the last one.
const inner = (table, key) => {
  const held = table.get(key);
  return Array.isArray(held) ? held.at(-1) : held;
};

// Returns { root, here }. A table is a Map. `here` is what is at `pos`, or null:
//
//   what           "key", "value" or "header"
//   from, to       of the key, of the value, or of the part of the header between two dots
//   path, tables   the keys from the root to the table or value, and the tables on the way, the root first:
//                  tables[i] holds path[i]
//   written        the key as it is there, "" in an empty place
//   assigned       whether `=` follows the key
//   item           whether the value is one of a list
//   header         { from, to, double } of a header
const place = (text, pos) => {
  const root = new Map();
  let i = 0;
  let here = null;

  const note = (what, from, to, path, tables, more) => {
    if (!here && from <= pos && pos <= to) here = { what, from, to, path, tables, ...more };
  };

  const blanks = () => { while (text[i] === " " || text[i] === "\t") i++; };

  const lineEnd = () => {
    const end = text.indexOf("\n", i);
    return end < 0 ? text.length : end;
  };

  const atBegin = () => !text.slice(text.lastIndexOf("\n", i - 1) + 1, i).trim();

  const string = () => {
    const quote = text[i];
    const long = text.startsWith(quote.repeat(3), i);
    const close = long ? quote.repeat(3) : quote;
    const limit = long ? text.length : lineEnd();
    const begin = (i += close.length);
    while (i < limit && !text.startsWith(close, i)) i += text[i] === "\\" && quote === '"' ? 2 : 1;
    i = Math.min(i, limit);
    const inside = text.slice(begin, i);
    if (i < limit) i += close.length;
    return inside;
  };

  // A key with dots, of which each part is noted; returns the path and the tables up to its last part.
  const key = (what, path, tables, more = {}) => {
    const noted = [];
    for (;;) {
      blanks();
      const from = i;
      let name;
      if (text[i] === '"' || text[i] === "'") name = string();
      else {
        while (i < text.length && /[\w-]/.test(text[i])) i++;
        name = text.slice(from, i);
      }
      noted.push([from, i, path, tables, name]);
      blanks();
      if (text[i] !== "." || !name) break;
      const table = tables.at(-1);
      if (!(inner(table, name) instanceof Map)) table.set(name, new Map());
      [path, tables] = [[...path, name], [...tables, inner(table, name)]];
      i++;
    }
    const assigned = text[i] === "=";
    for (const [from, to, up, above, written] of noted) note(what, from, to, up, above, { written, assigned, ...more });
    return { path, tables, name: noted.at(-1)[4] };
  };

  // Blank places and comments up to the next key or value. A key may be typed in the blanks.
  const gap = (lines, what, path, tables, more) => {
    for (;;) {
      const from = i;
      blanks();
      const next = text[i];
      const free = next === undefined || "\n},]".includes(next) || next === "#";
      note(what, from, free ? i - (next === "#") : i - 1, path, tables, { written: "", ...more, from: pos, to: pos });
      if (!lines) return;
      if (next === "#") i = lineEnd();
      if (text[i] !== "\n") return;
      i++;
    }
  };

  const list = (path, tables) => {
    const held = [];
    i++;
    while (i < text.length) {
      gap(true, "value", path, tables, { item: true });
      if (atBegin() && AFTER_LIST.test(text.slice(i, lineEnd()))) break;
      if (text[i] === "]") { i++; break; }
      const before = i;
      if (text[i] !== "," && i < text.length) held.push(value(path, tables, true));
      if (i === before) i++;
    }
    return held;
  };

  const inline = (path, tables) => {
    const table = new Map();
    const chain = [...tables, table];
    i++;
    while (i < text.length) {
      gap(false, "key", path, chain);
      if (text[i] === "}") { i++; break; }
      if (text[i] === "\n" || text[i] === undefined) break;
      const before = i;
      if (text[i] !== ",") pair(path, chain);
      if (text[i] === ",") i++;
      if (i === before) i++;
    }
    return table;
  };

  const value = (path, tables, item) => {
    if (text[i] === "[") return list(path, tables);
    if (text[i] === "{") return inline(path, tables);
    const from = i;
    if (text[i] === '"' || text[i] === "'") {
      const inside = string();
      note(text.slice(from, i).includes("\n") ? "none" : "value", from, i, path, tables, { item });
      return inside;
    }
    while (i < text.length && !/[\s,\]}#]/.test(text[i])) i++;
    note("value", from, i, path, tables, { item });
    return text.slice(from, i);
  };

  const pair = (path, tables) => {
    const { path: up, tables: above, name } = key("key", path, tables);
    const table = above.at(-1);
    if (text[i] !== "=") {
      if (name && !table.has(name)) table.set(name, null);
      return;
    }
    i++;
    const full = [...up, name];
    gap(false, "value", full, above);
    if (i >= text.length || "\n#".includes(text[i])) table.set(name, null);
    else table.set(name, value(full, above, false));
    blanks();
  };

  let path = [];
  let tables = [root];
  for (;;) {
    gap(true, "key", path, tables);
    if (i >= text.length) break;
    if (text[i] === "[") {
      const from = i;
      const double = text[i + 1] === "[";
      i += double ? 2 : 1;
      const rest = /^[^\n#]*?(\]{1,2}|(?=#)|$)/m.exec(text.slice(i, lineEnd()))[0];
      const header = { from, to: i + rest.length, double };
      const at = key("header", [], [root], { header });
      const table = at.tables.at(-1);
      const held = table.get(at.name);
      if (double) table.set(at.name, [...(Array.isArray(held) ? held : []), new Map()]);
      else if (at.name && !(inner(table, at.name) instanceof Map)) table.set(at.name, new Map());
      path = at.name ? [...at.path, at.name] : at.path;
      tables = at.name ? [...at.tables, inner(table, at.name)] : at.tables;
    } else {
      const before = i;
      pair(path, tables);
      if (i > before && atBegin()) continue; // of a list without its end
    }
    i = lineEnd() + 1; // the rest is a comment, or a mistake
  }
  return { root, here: here?.what === "none" ? null : here };
};

export { place };
