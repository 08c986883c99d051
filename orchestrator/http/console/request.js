// The body of a search, and the same search as a command, as a program and as the call of a tool.

/** The tests of a filter: what the form calls them, and their conditions. */
export const TESTS = {
  is: (field, value) => ({ op: "eq", field, value }),
  "is not": (field, value) => ({ op: "not", filter: { op: "eq", field, value } }),
  "is at least": (field, value) => ({ op: "range", field, gte: value }),
  "is at most": (field, value) => ({ op: "range", field, lte: value }),
  "has a value": (field) => ({ op: "exists", field }),
};

/** Whether a condition of the form says anything. */
export const isComplete = ({ field, test, value }) => field !== "" && (value !== "" || test === "has a value");

/** The body of `POST /v1/search`. What is left at its default is not in it. */
export function bodyOf(state, side) {
  const { mode, profile, fusion, rerank, weights } = state[side];
  const conditions = state.filters
    .filter(isComplete)
    .map(({ field, test, value }) => TESTS[test](field, value));
  return {
    query: state.query,
    ...(mode === "auto" ? {} : { mode }),
    ...(profile && { profile }),
    ...(fusion && { fusion }),
    ...(Object.keys(weights).length ? { weights } : {}),
    ...(state.collections.length ? { collections: state.collections } : {}),
    ...(conditions.length === 1 ? { filter: conditions[0] } : {}),
    ...(conditions.length > 1 ? { filter: { op: "and", filters: conditions } } : {}),
    ...number("limit", state.limit),
    ...number("neighbors", state.neighbors),
    ...(state.collapse && { collapse: state.collapse }),
    ...number("min_confidence", state.minConfidence),
    ...(rerank && { rerank: rerank === "on" }),
  };
}

/** A number of the form. One that is none is sent as it is: the service says what is allowed. */
function number(name, text) {
  if (text === "") return {};
  return { [name]: Number.isFinite(Number(text)) ? Number(text) : text };
}

const TEXTS = ["collection", "language", "tags", "topics", "section", "url", "created_at", "sensitivity", "visibility", "owner", "team", "id", "parent_id", "window_id"];
const NUMBERS = ["importance", "chunk_index"];
const MOST_EXAMPLES = 30;

/** What was typed as the value of a field, in the type of the field: that of an example, or what it looks like. */
export function typed(field, text, fields) {
  const isNumber = text.trim() !== "" && Number.isFinite(Number(text));
  if (TEXTS.includes(field)) return text;
  if (NUMBERS.includes(field)) return isNumber ? Number(text) : text;
  const examples = [...(fields.get(field) ?? [])];
  const same = examples.find((each) => String(each) === text);
  if (same !== undefined) return same;
  const types = new Set(examples.map((each) => typeof each));
  if (isNumber && (types.has("number") || !types.size)) return Number(text);
  if ((text === "true" || text === "false") && (types.has("boolean") || !types.size)) return text === "true";
  return text;
}

/** The fields that filters know, each with examples of its values in some documents. */
export function fieldsOf(documents) {
  const fields = new Map([...TEXTS, ...NUMBERS].map((field) => [field, new Set()]));
  const add = (field, value) => {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each === null || each === undefined) continue;
      if (!fields.has(field)) fields.set(field, new Set());
      if (fields.get(field).size < MOST_EXAMPLES) fields.get(field).add(each);
    }
  };
  for (const document of documents) {
    [...TEXTS, ...NUMBERS].forEach((field) => add(field, document[field]));
    Object.entries(document.metadata ?? {}).forEach(([name, value]) => add(`metadata.${name}`, value));
  }
  return fields;
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** For a shell. A key is named, not shown. */
export function curl(address, body, hasKey) {
  const key = hasKey ? ' \\\n  -H "authorization: Bearer $API_KEY"' : "";
  return `curl -s ${quoted(`${address}/v1/search`)} \\\n  -H 'content-type: application/json'${key} \\\n  -d ${quoted(JSON.stringify(body))}`;
}

/** For `orchestrator.client`. */
export function python(address, { query, ...fields }, hasKey) {
  const given = Object.entries(fields).map(([name, value]) => `, ${name}=${literal(value)}`).join("");
  const key = hasKey ? ', key=os.environ["API_KEY"]' : "";
  return [
    ...(hasKey ? ["import os", ""] : []),
    "from orchestrator.client import Client  # pip install '.[client]', in the folder of Trivium",
    "",
    `with Client(${literal(address)}${key}) as client:`,
    `    response = client.search(${literal(query)}${given})`,
    "    for hit in response.hits:",
    "        print(round(hit.score, 3), hit.id, hit.title)",
  ].join("\n");
}

function literal(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, each]) => `${literal(name)}: ${literal(each)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

const OF_TOOL = ["query", "limit", "collections", "min_confidence"];

/** The call of the tool `hybrid_search` over MCP, and the fields that the tool does not have. */
export function toolCall(body) {
  const given = Object.fromEntries(OF_TOOL.filter((name) => name in body).map((name) => [name, body[name]]));
  if (body.filter) given.filters = body.filter;
  if (body.neighbors) given.expand_neighbors = body.neighbors;
  const missing = Object.keys(body).filter((name) => !OF_TOOL.includes(name) && name !== "filter" && name !== "neighbors");
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hybrid_search", arguments: given } };
  return { text: JSON.stringify(call, null, 2), missing };
}
