// Texts of documents as they are shown, and the reasons of a response in sentences.

import { html } from "./vendor/lit-html/lit-html.js";

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/g;
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#39;": "'", "&amp;": "&" };
const SMALL = 0.1;

/** A text with visible signs in place of control characters. */
export const shown = (text) => String(text).replace(CONTROL, "\ufffd");

/** A text in its own direction, which does not reach what is around it. */
export const isolated = (text) => html`<bdi>${shown(text)}</bdi>`;

/** The same within a sentence that is a text itself. */
const inline = (text) => `\u2068${shown(text).replace(DIRECTIONS, "")}\u2069`;

/** A snippet: HTML in which everything but the marks is escaped. It is read, and never becomes markup. */
export function marked(snippet) {
  return snippet.split(/(<mark>[^<]*<\/mark>)/).map((part) => part.startsWith("<mark>")
    ? html`<mark>${unescaped(part.slice(6, -7))}</mark>`
    : unescaped(part));
}

const unescaped = (text) => shown(text.replace(/&(?:lt|gt|quot|#x27|#39|amp);/g, (found) => ENTITIES[found]));

/** An address that a click may open: of the web only. */
export function webAddress(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol) ? url : null;
  } catch {
    return null;
  }
}

const NAMES = { vector: "vector search", graph: "the graph", keyword: "keyword search" };
const ENCODERS = { model: "the model", static: "the static encoder" };

export const sourceName = (source) => NAMES[source] ?? source;
export const percent = (part) => `${Math.round(part * 100)} %`;
export const decimals = (number, digits = 2) => Number(number).toFixed(digits);
export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** A number with two decimals, or with two digits if it is small: contributions of rank fusion are. */
export const amount = (number) => (number === 0 || Math.abs(number) >= SMALL ? decimals(number) : String(Number(number.toPrecision(2))));

export function ordinal(rank) {
  const end = rank % 100 > 10 && rank % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][rank % 10] ?? "th";
  return `${rank}${end}`;
}

export const titleOf = (document) => document.title || document.id;

/** The sum of what the sources contributed to a hit. */
export const sumOf = (hit) => Object.values(hit.sources).reduce((sum, each) => sum + (each?.contribution ?? 0), 0);

const upper = (text) => text[0].toUpperCase() + text.slice(1);
const identity = (hit) => (hit.collection === "documents" ? hit.id : `${hit.id}\u001f${hit.collection}`);

/** Why a hit is where it is, one sentence each. */
export function reasonsOf(hit, response) {
  const total = sumOf(hit);
  const reasons = Object.entries(hit.sources).map(([source, each]) => {
    const name = upper(sourceName(source));
    if (each) {
      const count = response.explain?.rankings[source]?.length;
      const among = count ? ` of ${counted(count, "document")}` : "";
      const part = total > 0 ? `, ${percent(each.contribution / total)} of the sum` : "";
      const why = each.contribution > each.weight * 1.001 ? `; the fusion, ${response.explain?.fusion ?? "of the profile"}, lets it count more than its weight` : "";
      return `${name} ranks it ${ordinal(each.rank)}${among}, with a score of ${amount(each.score)}. `
        + `With the weight ${each.weight} it contributes ${amount(each.contribution)}${part}${why}.`;
    }
    if (!response.route.sources.includes(source)) return `${name} was not searched.`;
    const failed = response.degraded.find((each) => each.source === source);
    return failed ? `${name} failed: ${inline(failed.reason)}.` : `${name} did not find it.`;
  });
  reasons.push(`Together that is ${amount(total)}; divided by the largest sum that there could be, ${decimals(hit.fusion_score, 3)}.`);
  for (const [boost, factor] of Object.entries(hit.boosts)) {
    reasons.push(factor === 1
      ? `The boost by ${boost} does not change its score.`
      : `The boost by ${boost} multiplies its score by ${decimals(factor, 3)}.`);
  }
  if (hit.score !== hit.fusion_score) reasons.push(`So its score is ${decimals(hit.score, 3)}.`);
  if (hit.rerank) reasons.push(`The reranker moved it to rank ${hit.rerank.rank}.`);
  const replaced = Object.values(response.explain?.removed.collapsed ?? {}).filter((each) => each === identity(hit));
  if (replaced.length) reasons.push(`It stands for ${counted(replaced.length, "more result")} of the same document.`);
  if (hit.parent_id !== null) reasons.push(`It is a part of the document ${inline(hit.parent_id)}.`);
  reasons.push(hit.confidence === null
    ? "How sure it is that the document answers the query has not been measured: trivium tidy does that if there are at least 50 documents."
    : `The confidence that it answers the query is ${percent(hit.confidence)}.`);
  return reasons;
}

/** How a response was computed, one sentence each. */
export function planOf(response) {
  const { explain } = response;
  if (!explain) return [];
  const encoder = ENCODERS[response.encoder];
  const sentences = [
    `The profile is ${explain.profile}, the fusion ${explain.fusion}.`,
    `Weights: ${Object.entries(explain.weights).map(([source, weight]) => `${source} ${weight}`).join(", ")}.`,
    encoder ? `The query was encoded by ${encoder}.` : "The query was not encoded.",
    `Each list of a source has at most ${explain.depth} documents; collections are lists of their own.`,
  ];
  if (explain.expansions.length) sentences.push(`Synonyms were added: ${explain.expansions.map(inline).join(", ")}.`);
  const removed = {
    "by the filter and the collections": explain.removed.filter,
    "by the minimum score": explain.removed.min_score,
    "by the minimum confidence": explain.removed.min_confidence,
    "because a better part of the same document is a hit": Object.keys(explain.removed.collapsed).length,
    "because they were deleted meanwhile": explain.removed.deleted,
    "by the access check": explain.removed.withheld,
  };
  for (const [reason, count] of Object.entries(removed)) {
    if (count) sentences.push(`${counted(count, "document was", "documents were")} left out ${reason}.`);
  }
  return sentences;
}

const LEVELS = {
  miss: "computed for this request",
  l1: "from the cache of the process",
  l2: "from the shared cache",
  stale: "from the cache, and being computed again",
};

export const cacheLevel = (level) => LEVELS[level] ?? level;
