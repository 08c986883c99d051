// What the view shows, and its form as a link. An API key is never part of it.

import { TESTS } from "./request.js";

export const MODES = ["auto", "hybrid"];
export const PROFILES = ["joint", "fast", "quality", "rrf", "weighted_rrf"];
export const COLLAPSES = ["parent", "window", "url", "none"];
export const STRATEGIES = [
  "concatenate()", "dbsf()", "joint_walk(base=4, slope=12, seeds=50)", "relative_score()", "rrf(k=60)", "weighted_sum()",
];
export const SEARCHING = ["search", "compare"];
export const VIEWS = [...SEARCHING, "graph", "status"];

/** One way to rank; an empty field is the default of the service. */
export const variant = () => ({ mode: "auto", profile: "", fusion: "", rerank: "", weights: {} });

export const initial = () => ({
  view: "search",
  query: "",
  collections: [],
  filters: [],
  limit: "",
  neighbors: "",
  collapse: "",
  minConfidence: "",
  a: variant(),
  b: { ...variant(), profile: "rrf" },
  node: null,
  examples: [],
});

const PLAIN = { q: "query", limit: "limit", neighbors: "neighbors", collapse: "collapse", confidence: "minConfidence" };
const OF_VARIANT = ["mode", "profile", "fusion", "rerank"];

/** The part of a link after `#`. */
export function linkOf(state) {
  const before = initial();
  const parameters = new URLSearchParams();
  if (state.view !== before.view) parameters.set("view", state.view);
  for (const [name, field] of Object.entries(PLAIN)) {
    if (state[field] !== before[field]) parameters.set(name, state[field]);
  }
  state.collections.forEach((each) => parameters.append("collection", each));
  state.filters.filter(({ field }) => field !== "").forEach(({ field, test, value }) => parameters.append("filter", JSON.stringify([field, test, value])));
  for (const side of ["a", "b"]) {
    for (const field of OF_VARIANT) {
      if (state[side][field] !== before[side][field]) parameters.set(`${side}.${field}`, state[side][field]);
    }
    for (const [source, weight] of Object.entries(state[side].weights)) {
      parameters.append(`${side}.weight`, `${source}:${weight}`);
    }
  }
  if (state.node) parameters.set("document", JSON.stringify([state.node.id, state.node.collection]));
  if (!state.query) state.examples.forEach((each) => parameters.append("example", each));
  return parameters.toString();
}

/** The state of such a part of a link. What it does not understand is left out. */
export function stateOf(link) {
  const parameters = new URLSearchParams(link);
  const state = initial();
  if (VIEWS.includes(parameters.get("view"))) state.view = parameters.get("view");
  for (const [name, field] of Object.entries(PLAIN)) state[field] = parameters.get(name) ?? state[field];
  state.collections = parameters.getAll("collection");
  state.examples = parameters.getAll("example");
  state.filters = parameters.getAll("filter").map(list)
    .filter(([field, test, value]) => typeof field === "string" && Object.hasOwn(TESTS, test) && isValue(value))
    .map(([field, test, value]) => ({ field, test, value }));
  for (const side of ["a", "b"]) {
    for (const field of OF_VARIANT) state[side][field] = parameters.get(`${side}.${field}`) ?? state[side][field];
    for (const each of parameters.getAll(`${side}.weight`)) {
      const end = each.lastIndexOf(":");
      const weight = Number(each.slice(end + 1));
      if (end > 0 && weight >= 0 && Number.isFinite(weight)) state[side].weights[each.slice(0, end)] = weight;
    }
  }
  const [id, collection] = list(parameters.get("document"));
  if (typeof id === "string" && typeof collection === "string") state.node = { id, collection };
  return state;
}

const isValue = (value) => ["string", "number", "boolean"].includes(typeof value);

/** The list in a parameter; empty if it has none. */
function list(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}
