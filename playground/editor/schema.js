// What the JSON Schema of a scenario allows at a place of its text.

const isTable = (node) => Boolean(node.properties || typeof node.additionalProperties === "object");

const referred = (schema, node) => node.$ref?.split("/").slice(1).reduce((at, name) => at[name], schema);

const descriptionOf = (schema, held) => {
  const one = held.find((node) => node.description) || held.map((node) => referred(schema, node)).find(Boolean);
  return one?.description || "";
};

// A node without references and lists, as its alternatives. Of alternatives told apart by a constant, such
// as `kind`, those that fit what the table has written, or all if none does. The constant at `except` is
// being written: it decides nothing.
const alternatives = (schema, node, table, except) => {
  if (!node || node === true) return [];
  if (node.$ref) return alternatives(schema, { ...referred(schema, node), ...node, $ref: undefined }, table, except);
  if (node.type === "array") return alternatives(schema, node.items, table, except);
  const several = node.oneOf || node.anyOf;
  if (!several) return [node];
  const all = several.flatMap((one) => alternatives(schema, one, table, except));
  const fits = (one) => Object.entries(one.properties || {}).every(([key, held]) =>
    held.const === undefined || key === except || !(table instanceof Map) || !table.has(key)
    || String(held.const) === table.get(key));
  const fitting = all.filter(fits);
  return fitting.length ? fitting : all;
};

// The alternatives at a path; siblings[i] is the table that holds path[i], and one more is the table there.
const allowed = (schema, path, siblings, except) =>
  path.reduce(
    (nodes, key, i) => nodes.flatMap((node) => alternatives(
      schema, child(node, key), siblings[i + 1], i === path.length - 1 ? except : null,
    )),
    alternatives(schema, schema, siblings[0], except),
  );

const child = (node, key) => {
  const own = Object.hasOwn(node.properties || {}, key) ? node.properties[key] : null;
  return own ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : null);
};

// The keys of some alternatives, each with every schema that it has among them.
const keysOf = (nodes) => {
  const keys = new Map();
  for (const node of nodes) {
    for (const [key, held] of Object.entries(node.properties || {})) {
      const known = keys.get(key) || { key, held: [], required: false };
      known.held.push(held);
      known.required ||= Boolean(node.required?.includes(key));
      keys.set(key, known);
    }
  }
  return [...keys.values()];
};

const written = (value) => (Array.isArray(value) ? `[${value.map(written).join(", ")}]` : JSON.stringify(value));

// The values that a key of these schemas may take, as far as they can be listed: { text, info, isDefault }.
// `tables` are the alternatives that hold the key. If its value selects one of them, that one describes the value.
const valuesOf = (schema, key, held, tables) => {
  const found = new Map();
  const add = (value, info) => {
    const text = written(value);
    if (!found.has(text) || !found.get(text).info) found.set(text, { text, info, isDefault: false });
  };
  const walk = (node, info) => {
    for (const one of alternatives(schema, node)) {
      const about = one.description || info;
      if (one.const !== undefined) add(one.const, about);
      for (const value of one.enum || []) add(value);
      if (one.type === "boolean") [true, false].forEach((value) => add(value));
    }
  };
  held.forEach((node) => walk(node, tables.find((one) => one.properties?.[key] === node)?.description));
  for (const { default: value } of held) {
    if (value === undefined || typeof value === "object") continue;
    add(value);
    found.get(written(value)).isDefault = true;
  }
  return [...found.values()];
};

const TYPES = { string: "text", integer: "whole number", number: "number", boolean: "true or false", object: "table", array: "list" };

// The type of a key in the words of the reference.
const typeOf = (schema, held) => {
  const words = held.flatMap((node) => {
    if (node === true) return ["any value"];
    if (node.type === "array") {
      return [alternatives(schema, node).some(isTable) ? "list of tables" : "list"];
    }
    return alternatives(schema, node).map((one) => {
      if (one.type === "object") return one.properties ? "table" : "tables by name";
      if (one.const !== undefined || one.enum) return "choice";
      return one.type === "string" && one.format ? one.format : TYPES[one.type] || "any value";
    });
  });
  return [...new Set(words)].join(" or ");
};

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// The lines that say what a key may hold, below its description. A table's default is that of its keys.
const limitsOf = (schema, held) => {
  const nodes = held.flatMap((node) => alternatives(schema, node)).concat(held);
  const first = (name) => nodes.find((node) => node[name] !== undefined)?.[name];
  const units = /\(([^()]*)\)\$$/.exec(first("pattern") || "")?.[1];
  const [least, most, initial] = [first("minimum"), first("maximum"), held.find((node) => node.default !== undefined)?.default];
  return [
    units && `units: ${units.split("|").join(", ")}`,
    !units && first("pattern") && `pattern: ${first("pattern")}`,
    least !== undefined && `minimum: ${least}`,
    most !== undefined && `maximum: ${most}`,
    initial !== undefined && !isObject(initial) && `default: ${written(initial)}`,
  ].filter(Boolean);
};

const firstSentence = (text) => /^.*?\.(?=\s+[A-Z`]|$)/s.exec(text)?.[0] ?? text;

export { allowed, alternatives, child, descriptionOf, firstSentence, isTable, keysOf, limitsOf, typeOf, valuesOf };
