// What stands above the hits: the sources, what failed, the cache, the time; and the request to copy.

import { html, nothing, svg } from "./vendor/lit-html/lit-html.js";
import { cacheLevel, counted, decimals, isolated, percent, planOf, sourceName } from "./texts.js";
import { curl, python, toolCall } from "./request.js";

const BEFORE = ["plan", "embed_model", "embed_static"];

/** The stages of a search with their starts and durations in ms. */
function stagesOf(timings, sources) {
  const stages = [];
  let end = 0;
  const add = (name, start, ms, number = -1) => stages.push({ name, start, ms, number });
  for (const name of BEFORE.filter((each) => each in timings)) {
    add(name, end, timings[name]);
    end += timings[name];
  }
  const searched = Object.keys(timings).filter((each) => each in sources);
  const sum = searched.reduce((total, each) => total + timings[each], 0);
  const gathering = timings.gather - Math.max(0, end - (timings.plan ?? 0));
  const oneByOne = !(gathering < sum * 0.9);
  let start = end;
  for (const source of searched) {
    add(source, start, timings[source], Object.keys(sources).indexOf(source));
    end = Math.max(end, start + timings[source]);
    if (oneByOne) start += timings[source];
  }
  for (const [name, ms] of Object.entries(timings)) {
    if (name === "gather" || stages.some((each) => each.name === name)) continue;
    add(name, end, ms);
    end += ms;
  }
  return { stages, end };
}

function waterfall(response) {
  const sources = response.hits[0]?.sources ?? Object.fromEntries(response.route.sources.map((each) => [each, null]));
  const { stages, end } = stagesOf(response.timings_ms, sources);
  if (!stages.length) return html`<p class="faint">No stage ran: the response is ${cacheLevel(response.cache)}.</p>`;
  return html`<table class="waterfall"><caption class="hidden">Time of each stage</caption><tbody>
    ${stages.map(({ name, start, ms, number }) => html`<tr>
      <th scope="row">${name.replaceAll("_", " ")}</th>
      <td class="wide"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        ${svg`<rect class=${number < 0 ? "stage" : `source-${number}`} x=${(100 * start) / end} y="1" width=${Math.max((100 * ms) / end, 0.5)} height="6"></rect>`}
      </svg></td>
      <td>${decimals(ms)} ms</td></tr>`)}
  </tbody></table>`;
}

const failure = ({ source, reason, after_ms: ms }) => html`<li><b>${isolated(sourceName(source))}</b>: ${isolated(reason)}
  <span class="faint">after ${decimals(ms, 0)} ms</span></li>`;

/** The summary of a response. */
export function summaryView(response, act) {
  const { total, route } = response;
  const found = `${total.relation === "gte" ? "at least " : ""}${counted(total.value, "hit")}`;
  return html`<section class="summary" aria-label="about this response">
    <p><b>${found}</b> in ${decimals(response.took_ms, 1)} ms, ${cacheLevel(response.cache)}${response.confidence === null
      ? nothing : html`; confidence ${percent(response.confidence)}`}. ${response.cache === "miss" ? nothing
      : html`<button type="button" class="plain" @click=${act.recompute}>Compute it again</button>`}</p>
    <p>Searched: ${route.sources.map(sourceName).join(", ")}. <span class="faint">${isolated(route.reason)}</span></p>
    ${response.degraded.length ? html`<div class="alert" role="alert">
      <p>Something failed, or was not done as asked. What is shown is valid.</p><ul>${response.degraded.map(failure)}</ul></div>` : nothing}
    ${response.warnings.length ? html`<ul class="alert mild">${response.warnings.map((each) => html`<li>${isolated(each)}</li>`)}</ul>` : nothing}
    <details class="how"><summary>How it was computed</summary>
      ${waterfall(response)}
      <ul>${planOf(response).map((each) => html`<li>${each}</li>`)}</ul>
    </details>
  </section>`;
}

function copyable(name, text, act) {
  return html`<div class="copyable">
    <div class="head"><h3>${name}</h3>
      <button type="button" @click=${(event) => act.copy(text, event.currentTarget)}>Copy<span class="hidden"> ${name}</span></button></div>
    <pre tabindex="0" role="group" aria-label=${name}>${text}</pre>
  </div>`;
}

/** The request of a response in other languages. */
export function copiesView(body, address, hasKey, link, act) {
  const tool = toolCall(body);
  return html`<details class="copies"><summary>Use this request elsewhere</summary>
    ${copyable("curl", curl(address, body, hasKey), act)}
    ${copyable("Python", python(address, body, hasKey), act)}
    ${copyable("MCP", tool.text, act)}
    ${tool.missing.length ? html`<p class="faint">The tool has no ${tool.missing.join(", ")}: what it does not have is left out.</p>` : nothing}
    ${copyable("Link to this view", link, act)}
  </details>`;
}
