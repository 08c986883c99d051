// What is shown where there is nothing else to show: failures, no documents, no hits, no query.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { hasKey } from "./api.js";
import { counted, isolated } from "./texts.js";

/** Why something could not be loaded, and what to do. */
export function failureView(error, act) {
  const again = html`<button type="button" @click=${act.reload}>Try again</button>`;
  const reason = html`<p><b>${isolated(error.message)}</b></p>`;
  if (error.status === 0) {
    return html`<div class="empty" role="alert">${reason}<p>Is the service running? <code>trivium serve</code> starts it.</p>${again}</div>`;
  }
  if (error.status === 401) {
    return html`<div class="empty" role="alert"><p><b>${hasKey() ? "The service does not know this key." : "The service needs an API key."}</b></p>
      <p class="faint">An operator makes keys with <code>trivium keys add</code>.</p></div>`;
  }
  if (error.status === 403) {
    return html`<div class="empty" role="alert">${reason}<p>Another key, or another address of the page, may be allowed to.</p>${again}</div>`;
  }
  return html`<div class="empty" role="alert">${reason}${again}</div>`;
}

/** Instead of hits, where nothing was found: what to relax. */
export function nothingFoundView(response, state, act) {
  const advice = [
    state.filters.length && ["Search without the filter", { filters: [] }],
    state.collections.length && ["Search all collections", { collections: [] }],
    state.minConfidence !== "" && ["Accept any confidence", { minConfidence: "" }],
    state.a.mode !== "auto" && ["Search every source", { a: { ...state.a, mode: "auto" } }],
  ].filter(Boolean);
  return html`<div class="empty"><p><b>Nothing was found.</b></p>
    ${response.explain?.removed.min_confidence ? html`<p>${counted(response.explain.removed.min_confidence, "document was", "documents were")}
      left out, because the confidence is too low.</p>` : nothing}
    ${advice.length ? advice.map(([text, part]) => html`<button type="button" @click=${() => act.change(part)}>${text}</button> `)
      : html`<p>Try other or fewer words; text in quotes has to occur word for word.</p>`}
  </div>`;
}

/** Instead of hits, where there are no documents. */
export function noDocumentsView(act) {
  const [reason, command] = hasKey()
    ? ["There are no documents that this key may see.", "trivium index PATH --tenant TENANT"]
    : ["There are no documents yet.", "trivium index PATH"];
  return html`<div class="empty"><p><b>${reason}</b></p>
    <p>To index a folder: <code>${command}</code>${hasKey() ? ", with the tenant of the key" : nothing}. Then <button type="button"
      @click=${act.reload}>load again</button></p></div>`;
}

/** Before the first query. */
export function examplesView(state, act) {
  if (!state.examples.length) return html`<p class="empty">Type a query, and press Enter.</p>`;
  return html`<div class="empty"><p>For example:</p>${state.examples.map((query) => html`<p><button type="button"
    @click=${() => act.submit(query)}>${isolated(query)}</button></p>`)}</div>`;
}
