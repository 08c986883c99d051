// The console: what is shown, and what becomes of each action. Everything it knows it asks the API for.

import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import * as api from "./api.js";
import { compareView } from "./compare.js";
import { isWide, queryForm, rankingForm, scopeForm } from "./form.js";
import { graphView, layout } from "./graph.js";
import { Animation, hitList, movements } from "./hits.js";
import { bodyOf, fieldsOf } from "./request.js";
import { initial, linkOf, stateOf, VIEWS } from "./state.js";
import { statusView } from "./status.js";
import { copiesView, summaryView } from "./summary.js";
import { counted, shown } from "./texts.js";

const TITLES = { search: "Search", compare: "A | B", graph: "Graph", status: "Status" };
const PAUSE_MS = 120;
const CONFIRMED_MS = 2_000;

const root = document.getElementById("app");
const animation = new Animation();

let state = stateOf(location.hash.slice(1));
let known = { collections: [], fields: new Map(), sources: [], failure: null, isLoaded: false };
let results = {};
let neighborhood = null;
let status = null;
let timer = 0;
let asksForKey = false;

/** Change the view, and its link. With `isStep` the browser's Back leads to the view before. */
function change(part, isStep = false) {
  state = { ...state, ...part };
  const link = `#${linkOf(state)}`;
  if (isStep && link !== location.hash) history.pushState(null, "", link);
  else history.replaceState(null, "", link);
  document.title = state.query ? `${state.query} – Trivium` : "Trivium";
  draw();
}

const sidesOf = (view) => (view === "compare" ? ["a", "b"] : ["a"]);

/**
 * Search with the present settings. Of several searches of a side, the newest one counts.
 * `isSameQuery`: only the ranking was changed, and hits show how far they moved since the first response.
 */
async function search(side, isSameQuery) {
  results[side]?.controller?.abort();
  const controller = new AbortController();
  const body = bodyOf(state, side, known.fields);
  results[side] = { ...results[side], controller, isLoading: true };
  draw();
  try {
    const response = await api.search({ ...body, explain: true }, controller.signal);
    const first = (isSameQuery && results[side].first) || response;
    animation.start(root);
    results[side] = { response, body, first, moved: movements(first.hits, response.hits) };
    draw();
    animation.play(root);
  } catch (error) {
    if (error.name === "AbortError") return;
    results[side] = { error: failed(error) };
    draw();
  }
}

/** An error of the service. Any other one is a fault of the console. */
function failed(error) {
  if (!(error instanceof api.Failure)) throw error;
  if (error.status === 401) asksForKey = true;
  return error;
}

function searchAll(isSameQuery = false) {
  if (state.query.trim() === "") return;
  for (const side of sidesOf(state.view)) search(side, isSameQuery);
}

/** Search when nothing has changed for a moment. */
function searchSoon(isSameQuery) {
  clearTimeout(timer);
  timer = setTimeout(() => searchAll(isSameQuery), PAUSE_MS);
}

/** What the forms offer. */
async function learn() {
  try {
    const [collections, documents, readiness] = await Promise.all([api.collections(), api.sample(), api.readiness()]);
    known = {
      collections: collections.collections,
      fields: fieldsOf(documents.documents),
      sources: Object.keys(readiness.sources),
      failure: null,
      isLoaded: true,
    };
  } catch (error) {
    known = { ...known, failure: failed(error), isLoaded: true };
  }
  draw();
}

async function loadNeighborhood() {
  neighborhood = null;
  if (!state.node) return;
  const { node } = state;
  try {
    const found = await api.neighbors(node);
    if (node === state.node) neighborhood = { found, ...layout(found) };
  } catch (error) {
    if (node === state.node) neighborhood = { error: failed(error) };
  }
  draw();
}

async function loadStatus() {
  status = null;
  draw();
  const orNull = (promise) => promise.catch((error) => {
    if (error.status === 403) return null;
    throw error;
  });
  try {
    const [readiness, collections, report, cache] = await Promise.all([
      api.readiness(), api.collections(), orNull(api.status()), orNull(api.cache())]);
    status = { readiness, collections, status: report, cache };
  } catch (error) {
    status = { error: failed(error) };
  }
  draw();
}

/** Load what a view shows. */
function load() {
  if (state.view === "status") loadStatus();
  else if (state.view === "graph") loadNeighborhood();
  else searchAll();
}

const act = {
  submit(query) {
    change({ query, view: VIEWS.slice(0, 2).includes(state.view) ? state.view : "search" }, true);
    searchAll();
  },
  change(part) {
    change(part);
    searchSoon(false);
  },
  filter(filters) {
    act.change({ filters });
  },
  rank(side, part) {
    change({ [side]: { ...state[side], ...part } });
    searchSoon(true);
  },
  explore({ id, collection }) {
    change({ view: "graph", node: { id, collection } }, true);
    loadNeighborhood();
    root.querySelector("main")?.focus();
  },
  follow(node) {
    if (node.kind === "document") act.explore(node.document);
    else {
      change({ view: "search", query: node.name.name }, true);
      searchAll();
    }
  },
  show(view) {
    change({ view }, true);
    load();
  },
  async copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.dataset.state = "copied";
    } catch {  // not allowed on a page without TLS: then the text is selected, to be copied by hand
      getSelection().selectAllChildren(button.closest(".copyable").querySelector("pre"));
      button.dataset.state = "selected";
    }
    setTimeout(() => delete button.dataset.state, CONFIRMED_MS);
  },
  key(text) {
    api.useKey(text);
    asksForKey = false;
    results = {};
    learn().then(load);
  },
  reload() {
    learn();
    load();
  },
  failure: failureView,
};

function keyForm() {
  return html`<form class="key" @submit=${(event) => { event.preventDefault(); act.key(event.target.elements.key.value); event.target.reset(); }}>
    <label>API key <input name="key" type="password" autocomplete="off" required></label>
    <button>Use this key</button>
    <p class="faint">It stays in the memory of this tab, and is sent to this service only.</p>
  </form>`;
}

function failureView(error) {
  const again = html`<button type="button" @click=${act.reload}>Try again</button>`;
  const message = html`<p><b>${shown(error.message)}</b></p>`;
  if (error.status === 0) {
    return html`<div class="empty" role="alert">${message}<p>Is the service running? <code>trivium serve</code> starts it.</p>${again}</div>`;
  }
  if (error.status === 401) {
    return html`<div class="empty" role="alert"><p><b>${api.hasKey() ? "The service does not know this key." : "The service needs an API key."}</b></p>
      ${keyForm()}<p class="faint">An operator makes keys with <code>trivium keys add</code>.</p></div>`;
  }
  if (error.status === 403) {
    return html`<div class="empty" role="alert">${message}<p>Another key, or another address of the page, may be allowed to.</p>${keyForm()}</div>`;
  }
  return html`<div class="empty" role="alert">${message}${again}</div>`;
}

function nothingFound(response) {
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

function noDocuments() {
  return html`<div class="empty"><p><b>There are no documents yet.</b></p>
    <p>Index a folder: <code>trivium index PATH</code>. Then <button type="button" @click=${act.reload}>load again</button></p></div>`;
}

function examples() {
  if (!state.examples.length) return html`<p class="empty">Type a query, and press Enter.</p>`;
  return html`<div class="empty"><p>For example:</p>${state.examples.map((query) => html`<p><button type="button"
    @click=${() => act.submit(query)}><bdi>${shown(query)}</bdi></button></p>`)}</div>`;
}

function resultView() {
  const result = results.a;
  if (result?.error) return failureView(result.error);
  if (!result?.response) {
    if (known.failure) return failureView(known.failure);
    if (known.isLoaded && !known.collections.length) return noDocuments();
    return result?.isLoading ? html`<p class="faint" role="status">Searching…</p>` : examples();
  }
  const { response, body, moved } = result;
  return html`<div class=${result.isLoading ? "waiting" : ""}>
    ${summaryView(response)}
    ${response.hits.length ? hitList(response, moved, act) : known.collections.length || !known.isLoaded ? nothingFound(response) : noDocuments()}
    ${copiesView(body, api.address(), api.hasKey(), location.href, act)}
  </div>`;
}

function searchView() {
  return html`<div class="columns">
    <div class="results">${resultView()}</div>
    <aside aria-label="settings"><details class="settings" ?open=${isWide()}><summary>Settings</summary>
      ${rankingForm("Ranking", state, "a", known.sources, results.a?.response?.explain, act)}
      ${scopeForm(state, known, act)}</details></aside>
  </div>`;
}

const CONTENT = {
  search: searchView,
  compare: () => (known.failure ? failureView(known.failure) : html`${state.query ? nothing : examples()}${compareView(state, known.sources, results, act)}`),
  graph: () => graphView(state, neighborhood, act),
  status: () => statusView(status, act),
};

/** What a screen reader says of the newest response. */
function announcement() {
  const response = results.a?.response;
  return response && !results.a.isLoading ? `${counted(response.hits.length, "hit")} shown` : "";
}

function draw() {
  render(html`<a class="skip" href="#content" @click=${(event) => { event.preventDefault(); root.querySelector("main").focus(); }}>Skip to the content</a>
    <header>
      <h1>Trivium</h1>
      <nav aria-label="views">${VIEWS.map((view) => html`<button type="button" aria-current=${view === state.view ? "page" : "false"}
        @click=${() => act.show(view)}>${TITLES[view]}</button>`)}</nav>
      <button type="button" class="plain" aria-expanded=${String(asksForKey)} @click=${() => { asksForKey = !asksForKey; draw(); }}>${api.hasKey() ? "Change the key" : "API key"}</button>
    </header>
    ${asksForKey && !isAskedBelow() ? keyForm() : nothing}
    ${queryForm(state, act)}
    <p class="hidden" role="status">${announcement()}</p>
    <main id="content" tabindex="-1">${CONTENT[state.view]()}</main>`, root);
}

/** Whether the content has the form for the key already. */
function isAskedBelow() {
  const shownError = { search: results.a?.error ?? (results.a?.response ? null : known.failure), compare: known.failure, graph: neighborhood?.error, status: status?.error }[state.view];
  return shownError?.status === 401 || shownError?.status === 403;
}

addEventListener("hashchange", () => {
  state = stateOf(location.hash.slice(1));
  results = {};
  draw();
  load();
});
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.getElementById("query").focus();
});

draw();
if (state.filters.length) learn().then(load);  // the types of the values in a filter are those of the documents
else {
  learn();
  load();
}
