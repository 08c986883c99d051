// The hits of a search: what each source contributed, and why.

import { html, nothing, svg } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { amount, decimals, isolated, marked, percent, reasonsOf, shown, sumOf, titleOf, webAddress } from "./texts.js";

export const keyOf = (hit) => JSON.stringify([hit.collection, hit.id]);

/** The rank of each hit, from 0, by its key. */
export const ranksOf = (hits) => new Map(hits.map((hit, index) => [keyOf(hit), index]));

/** The largest sum of contributions: the length of a whole bar. */
export const longest = (hits) => Math.max(...hits.map(sumOf), Number.MIN_VALUE);

/** The contributions of the sources to a hit as one bar, as long as their part of the largest sum. */
export function bar(hit, most) {
  let start = 0;
  const parts = Object.entries(hit.sources).map(([source, each], number) => {
    const width = (100 * (each?.contribution ?? 0)) / most;
    const part = svg`<rect class="source-${number}" x=${start} y="0" width=${Math.max(width, 0)} height="8"></rect>`;
    start += width;
    return part;
  });
  const described = Object.entries(hit.sources)
    .map(([source, each]) => (each ? `${source} ${amount(each.contribution)}` : `${source} nothing`));
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img"
    aria-label="contributions: ${described.join(", ")}">${parts}</svg>`;
}

const rankIn = ([source, each], number) => html`<li class="rank">
  <span class="dot source-${number}" aria-hidden="true"></span>${source}
  ${each ? html`<b>${each.rank}</b>` : html`<span class="faint">–</span>`}</li>`;

const factor = ([boost, value]) => (value === 1 ? nothing
  : html`<li class="factor" title="boost">${boost} × ${decimals(value, 3)}</li>`);

/** Where a part of a document is. */
function place(hit) {
  const parts = [
    hit.parent_id !== null && html`part of ${isolated(hit.parent_id)}`,
    hit.chunk_index !== null && `chunk ${hit.chunk_index}`,
    hit.heading_path.length > 1 && isolated(hit.heading_path.join(" › ")),
    hit.section !== null && hit.heading_path.length < 2 && html`section ${isolated(hit.section)}`,
  ].filter(Boolean);
  return parts.length ? html`<p class="faint">${parts.map((each, index) => html`${index ? ", " : ""}${each}`)}</p>` : nothing;
}

/** A value that becomes a condition when it is chosen. */
const condition = (field, value, act) => html`<button type="button" class="tag" title="only hits with this: ${shown(field)}"
  @click=${() => act.narrow(field, value)}>${isolated(value)}</button>`;

function details(hit, act) {
  const url = hit.url === null ? null : webAddress(hit.url);
  return html`<ul class="facts">
    <li>${condition("collection", hit.collection, act)}</li>
    ${hit.created_at ? html`<li><time datetime=${hit.created_at}>${hit.created_at.slice(0, 10)}</time></li>` : nothing}
    ${hit.sensitivity === "normal" ? nothing : html`<li>${hit.sensitivity}</li>`}
    ${hit.visibility === "tenant" ? nothing : html`<li>${hit.visibility}</li>`}
    ${hit.tags.map((tag) => html`<li>${condition("tags", tag, act)}</li>`)}
    ${url ? html`<li><a href=${url} target="_blank" rel="noopener noreferrer">${isolated(hit.url)}</a></li>`
      : hit.url ? html`<li>${isolated(hit.url)}</li>` : nothing}
  </ul>`;
}

function metadata(hit, act) {
  const values = Object.entries(hit.metadata).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((each) => [name, each]));
  return values.length ? html`<details><summary>Metadata</summary><ul class="facts">${values.map(([name, value]) => html`<li>
    ${isolated(name)}: ${condition(`metadata.${name}`, value, act)}</li>`)}</ul></details>` : nothing;
}

/** What became of the rank of a hit. */
function movement(moved) {
  if (moved === 0) return nothing;
  if (moved === null) return html`<span class="moved new">new</span>`;
  const places = Math.abs(moved);
  return html`<span class="moved ${moved > 0 ? "up" : "down"}"><span aria-hidden="true">${moved > 0 ? "▲" : "▼"} ${places}</span>
    <span class="hidden">moved ${moved > 0 ? "up" : "down"} by ${places}</span></span>`;
}

/** One hit. `act.explore` opens its neighborhood, `act.narrow` adds a condition. */
function hitView(hit, rank, { response, most, moved, act }) {
  return html`<li class="hit" data-key=${keyOf(hit)}>
    <div class="head">
      <span class="number" aria-hidden="true">${rank}</span>
      <h2>${isolated(titleOf(hit))}</h2>
      ${movement(moved.get(keyOf(hit)))}
      <span class="score" title="score">${decimals(hit.score, 3)}</span>
    </div>
    ${bar(hit, most)}
    <ul class="ranks" aria-label="rank in each source">
      ${Object.entries(hit.sources).map(rankIn)}
      ${Object.entries(hit.boosts).map(factor)}
      ${hit.rerank ? html`<li class="rank">reranker <b>${hit.rerank.rank}</b></li>` : nothing}
      ${hit.confidence === null ? nothing : html`<li class="rank">confidence <b>${percent(hit.confidence)}</b></li>`}
    </ul>
    ${place(hit)}
    <p class="snippet" dir="auto">${marked(hit.snippet ?? "")}</p>
    ${details(hit, act)}
    <div class="more">
      <details>
        <summary>Why is it here?</summary>
        <ul>${reasonsOf(hit, response).map((reason) => html`<li>${reason}</li>`)}</ul>
        <p class="faint">id <code>${isolated(hit.id)}</code></p>
      </details>
      ${hit.text.length > (hit.snippet ?? "").length ? html`<details>
        <summary>Text</summary>
        <p class="text" dir="auto" tabindex="0" role="group" aria-label="text">${shown(hit.text)}</p>
      </details>` : nothing}
      ${metadata(hit, act)}
      <button type="button" class="plain" @click=${() => act.explore(hit)}>Neighborhood
        <span class="hidden">of ${shown(titleOf(hit))}</span></button>
    </div>
  </li>`;
}

/** All hits that were loaded; `first` are those of the first response to the query. */
export function hitList({ response, first, moved }, act) {
  const { hits } = response;
  const most = longest(hits);
  const gone = first.hits.filter((hit) => !moved.has(keyOf(hit)));
  return html`<ol class="hits">${repeat(hits, keyOf, (hit, index) => hitView(hit, index + 1, { response, most, moved, act }))}</ol>
    ${response.next_cursor ? html`<p class="next"><button type="button" @click=${act.more}>More hits</button></p>` : nothing}
    ${gone.length ? html`<p class="faint">In the first response to this query, also: ${gone.map((hit, index) => html`${index ? ", " : ""}${isolated(titleOf(hit))}`)}.</p>` : nothing}`;
}

/** How far each hit moved since another ranking: places up; `null` for one that is as far up as that went, and was not there. */
export function movements(before, after) {
  const ranks = ranksOf(before);
  return new Map(after.map((hit, index) => {
    const rank = ranks.get(keyOf(hit));
    if (rank === undefined) return [keyOf(hit), index < before.length ? null : 0];
    return [keyOf(hit), rank - index];
  }));
}

/** Show hits at their places before, and let them move to their new ones. */
export class Animation {
  #before = new Map();

  /** Remember where the hits are. */
  start(root) {
    this.#before = new Map();
    for (const each of root.querySelectorAll(".hit[data-key]")) this.#before.set(each.dataset.key, each.offsetTop);
  }

  /** Move them from there, once. */
  play(root) {
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.#move(root);
    this.#before = new Map();
  }

  #move(root) {
    for (const each of root.querySelectorAll(".hit[data-key]")) {
      const before = this.#before.get(each.dataset.key);
      if (before === undefined || before === each.offsetTop) continue;
      each.animate([{ transform: `translateY(${before - each.offsetTop}px)` }, { transform: "none" }], { duration: 250, easing: "ease-out" });
    }
  }
}
