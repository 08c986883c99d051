// Two rankings of the same query side by side.

import { html, nothing, svg } from "./vendor/lit-html/lit-html.js";
import { bar, keyOf, longest, ranksOf } from "./hits.js";
import { isWide, rankingForm, scopeForm } from "./form.js";
import { decimals, isolated, shown, titleOf } from "./texts.js";

const ROW = 56;

/** How alike two rankings are: the hits of both, and Kendall's tau of the order of these (`null` for fewer than two). */
function likeness(first, second) {
  const ranks = ranksOf(second);
  const common = first.map((hit) => ranks.get(keyOf(hit))).filter((rank) => rank !== undefined);
  let agreeing = 0;
  for (let one = 0; one < common.length; one += 1) {
    for (let other = one + 1; other < common.length; other += 1) agreeing += common[one] < common[other] ? 1 : -1;
  }
  const pairs = (common.length * (common.length - 1)) / 2;
  return { common: common.length, of: Math.max(first.length, second.length), tau: pairs ? agreeing / pairs : null };
}

function side(name, result, act) {
  if (result?.error) return act.failure(result.error);
  if (!result?.response) return nothing;
  const { hits } = result.response;
  if (!hits.length) return html`<p class="empty">Nothing was found.</p>`;
  const most = longest(hits);
  return html`<ol class="compact ${result.isLoading ? "waiting" : ""}" aria-label="ranking ${name}">${hits.map((hit, index) => html`<li class="row">
    <div class="title"><span class="number" aria-hidden="true">${index + 1}</span><button type="button" class="plain"
      title=${shown(titleOf(hit))} @click=${() => act.explore(hit)}>${isolated(titleOf(hit))}</button></div>
    ${bar(hit, most)}</li>`)}</ol>`;
}

function lines(first, second) {
  const ranks = ranksOf(second);
  const height = ROW * Math.max(first.length, second.length, 1);
  return html`<svg class="lines" viewBox="0 0 100 ${height}" height=${height} preserveAspectRatio="none" aria-hidden="true">
    ${first.map((hit, index) => {
      const other = ranks.get(keyOf(hit));
      return other === undefined ? nothing : svg`<line class=${other === index ? "same" : "changed"}
        x1="0" y1=${ROW * (index + 0.5)} x2="100" y2=${ROW * (other + 0.5)}></line>`;
    })}</svg>`;
}

/** Both settings, both rankings, and how alike they are. */
export function compareView(state, known, results, act) {
  const { sources } = known;
  const first = results.a?.response?.hits ?? [];
  const second = results.b?.response?.hits ?? [];
  const areBothNew = [results.a, results.b].every((each) => each?.response && !each.isLoading);
  const { common, of, tau } = likeness(first, second);
  return html`${areBothNew && of ? html`<p class="likeness" role="status">
      <b>${common} of ${of}</b> hits are in both${tau === null ? nothing : html`; rank correlation (Kendall's tau) <b>${decimals(tau)}</b>`}.</p>` : nothing}
    <details class="settings" ?open=${isWide()}><summary>Settings</summary><div class="both">
      ${rankingForm("Ranking A", state, "a", sources, results.a?.response?.explain, act)}
      ${rankingForm("Ranking B", state, "b", sources, results.b?.response?.explain, act)}
    </div>
    <details><summary>Collections, filter, hits</summary><div class="both">${scopeForm(state, known, act)}</div></details></details>
    <div class="rankings">
      <section aria-label="A"><h2>A</h2>${side("A", results.a, act)}</section>
      ${areBothNew ? lines(first, second) : html`<div></div>`}
      <section aria-label="B"><h2>B</h2>${side("B", results.b, act)}</section>
    </div>`;
}
