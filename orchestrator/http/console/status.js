// The state of the service: collections, index, sources, caches.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { counted, isolated, percent, shown } from "./texts.js";

const MB = 1_000_000;
const megabytes = (bytes) => `${(bytes / MB).toLocaleString("en", { maximumFractionDigits: bytes < 10 * MB ? 1 : 0 })} MB`;

const table = (caption, head, rows) => html`<div class="wide"><table><caption>${caption}</caption>
  <thead><tr>${head.map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
  <tbody>${rows.map(([first, ...others]) => html`<tr><th scope="row">${first}</th>${others.map((each) => html`<td>${each}</td>`)}</tr>`)}</tbody>
</table></div>`;

const state = (text) => html`<span class=${text === "ok" ? "good" : text === "warming" ? "mild" : "bad"}>${shown(text)}</span>`;

/** The state of each source, in a table, with what is known of its replica. */
function sources(readiness, status) {
  return table("Sources", ["source", "state"], Object.entries(status?.sources ?? readiness.sources).map(([source, text]) => {
    const circuit = status?.circuits[source];
    return [source, html`${state(text)}${circuit && circuit !== "closed" ? html`, its circuit is ${circuit}` : nothing}`];
  }));
}

function replicas(status) {
  const rows = Object.entries(status.replicas);
  if (!rows.length) return nothing;
  return table("Stores of the documents", ["store", "writes that it lacks", "the oldest of them"], rows.map(([name, { writes, seconds }]) => [
    shown(name), writes.toLocaleString("en"), writes ? `${Math.round(seconds)} s old` : "–"]));
}

function index(status) {
  const facts = [
    ["Release", status.release],
    ["Documents, of all tenants", status.documents.toLocaleString("en")],
    ["Generation", status.generation.toLocaleString("en")],
    ["Built with", html`<code>${shown(status.index_version)}</code>`],
    ...Object.entries(status.mismatches).map(([source, reason]) => [`Mismatch: ${source}`, html`<span class="bad">${shown(reason)}</span>`]),
    ["Upkeep", shown(status.upkeep || "idle")],
    ["Writes", status.accepts_writes ? "are accepted" : html`<span class="bad">the data folder cannot be written to</span>`],
    ["Searches now", `${status.running} running, ${status.waiting} waiting`],
    ["Log of writes", megabytes(status.log_bytes)],
    ["Free on the disk", megabytes(status.disk_free_bytes)],
  ];
  return html`<h2>Index</h2><dl>${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** The view of what was loaded. */
export function statusView(found, act) {
  if (!found) return html`<p class="faint" role="status">Loading…</p>`;
  if (found.error) return act.failure(found.error);
  const { readiness, collections, status, cache } = found;
  return html`<section class="status">
    <h2>Service</h2>
    <p>It ${readiness.ready ? html`<b class="good">is ready</b>` : html`<b class="bad">is not ready</b>`}${readiness.draining ? ", because it is stopping" : nothing}.
      <button type="button" @click=${act.reload}>Load again</button></p>
    ${sources(readiness, status)}
    ${status ? replicas(status) : html`<p class="faint">More is shown to a key with the role operator.</p>`}
    ${table("Collections", ["collection", "documents"], collections.collections.map(({ name, documents }) => [isolated(name), documents.toLocaleString("en")]))}
    ${collections.unlisted ? html`<p class="faint">${counted(collections.unlisted, "smaller collection is", "smaller collections are")} not listed.</p>` : nothing}
    ${status ? index(status) : nothing}
    ${cache ? table("Caches", ["cache", "hits", "hit rate", "entries", "size", "state"], Object.entries(cache.levels).map(([name, level]) => [
      name, level.hits.toLocaleString("en"), percent(level.hit_rate ?? 0), level.entries?.toLocaleString("en") ?? "–",
      level.bytes === undefined ? "–" : megabytes(level.bytes), level.state ?? "–"])) : nothing}
  </section>`;
}
