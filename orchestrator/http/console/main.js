// The console: what is shown, and what becomes of each action. Everything it knows it asks the API for.

import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import * as api from "./api.js";
import { compareView } from "./compare.js";
import { isWide, queryForm, rankingForm, scopeForm } from "./form.js";
import { graphView, layout } from "./graph.js";
import { Animation, hitList, movements } from "./hits.js";
import { bodyOf, fieldsOf } from "./request.js";
import { examplesView, failureView, noDocumentsView, nothingFoundView } from "./messages.js";
import { linkOf, SEARCHING, stateOf, VIEWS } from "./state.js";
import { statusView } from "./status.js";
import { copiesView, summaryView } from "./summary.js";
import { counted } from "./texts.js";

const TITLES = { search: "Hits", compare: "A | B", graph: "Graph", status: "Status" };
const PAUSE_MS = 120;
const CONFIRMED_MS = 2_000;
const SAMPLED_COLLECTIONS = 8;

const root = document.getElementById("app");
const animation = new Animation();

let state = stateOf(location.hash.slice(1));
let known = { collections: [], documents: [], sources: [], failure: null, isLoaded: false };
let results = {};
let neighborhood = null;
let status = null;
let message = "";
let timer = 0;
let keyForm = { isOpen: false, problem: "" };
/** Ends what is loading when a link is opened or another key is used: no answer to what was before is shown. */
let present = new AbortController();

function forget() {
  present.abort();
  present = new AbortController();
  results = {};
  neighborhood = null;
  status = null;
}

/** Change the view, and its link. With `isStep` the browser's Back leads to the view before. */
function change(part, isStep = false) {
  state = { ...state, ...part };
  const link = `#${linkOf(state)}`;
  if (isStep && link !== location.hash) history.pushState(null, "", link);
  else history.replaceState(null, "", link);
  draw();
}

/** Load something and show it. `keep` gets what was loaded, or the failure of the service. */
async function load(read, keep, signal = present.signal) {
  try {
    const found = await read(signal);
    if (!signal.aborted) keep(found, null);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof api.Failure)) throw error;
    if (error.status === 401) keyForm = { ...keyForm, isOpen: true };
    keep(null, error);
  }
  draw();
}

/**
 * Search with the present settings. Of several searches of a side, the newest one counts.
 * `isSameQuery`: only the ranking was changed, and hits show how far they moved since the first response.
 */
async function search(side, isSameQuery, cache = {}) {
  results[side]?.own?.abort();
  const own = new AbortController();
  const body = bodyOf(state, side);
  results[side] = { ...results[side], own, isLoading: true };
  draw();
  await load((signal) => api.search({ ...body, ...cache, explain: true }, signal), (response, error) => {
    if (error) {
      results[side] = { error };
      return;
    }
    if (!known.sources.length) learn();
    const first = (isSameQuery && results[side].first) || response;
    animation.start(root);
    results[side] = { response, body, first, moved: movements(first.hits, response.hits) };
  }, AbortSignal.any([present.signal, own.signal]));
  animation.play(root);
}

function searchAll(isSameQuery = false) {
  if (state.query.trim() === "") {
    Object.values(results).forEach(({ own }) => own?.abort());
    results = {};
    draw();
    return;
  }
  for (const side of state.view === "compare" ? ["a", "b"] : ["a"]) search(side, isSameQuery);
}

/** Search for what is in the box when nothing has changed for a moment. */
function searchSoon(isSameQuery) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const query = document.getElementById("query").value;
    const isSame = isSameQuery && query === state.query;
    if (query !== state.query) change({ query });
    if (SEARCHING.includes(state.view)) searchAll(isSame);
  }, PAUSE_MS);
}

/** What the forms offer: collections, sources, and the fields and values of some documents of each collection. */
function learn() {
  known = { ...known, documents: [], failure: null };
  load(api.readiness, (readiness) => { if (readiness) known = { ...known, sources: Object.keys(readiness.sources) }; });
  load(api.collections, (found, failure) => {
    known = { ...known, collections: found?.collections ?? [], failure, isLoaded: true };
    for (const { name } of known.collections.slice(0, SAMPLED_COLLECTIONS)) {
      load((signal) => api.sample(name, signal), (page) => {
        if (page) known = { ...known, documents: [...known.documents, ...page.documents] };
      });
    }
  });
}

function loadNeighborhood() {
  neighborhood = null;
  const { node } = state;
  if (!node) return;
  load((signal) => api.neighbors(node, signal), (found, error) => {
    if (node === state.node) neighborhood = error ? { error } : { found, ...layout(found) };
  });
}

function loadStatus() {
  const unlessForbidden = (promise) => promise.catch((error) => {
    if (error.status === 403) return null;
    throw error;
  });
  load(async (signal) => {
    const [readiness, collections, report, cache] = await Promise.all([
      api.readiness(signal), api.collections(signal), unlessForbidden(api.status(signal)), unlessForbidden(api.cache(signal))]);
    return { readiness, collections, status: report, cache };
  }, (found, error) => { status = error ? { error } : found; });
}

/** Load what the view shows. */
function loadView() {
  if (state.view === "status") loadStatus();
  else if (state.view === "graph") loadNeighborhood();
  else searchAll();
}

const act = {
  submit(query) {
    clearTimeout(timer);
    change({ query, view: SEARCHING.includes(state.view) ? state.view : "search" }, true);
    searchAll();
  },
  change(part) {
    change(part);
    searchSoon(false);
  },
  filter(filters) {
    act.change({ filters });
  },
  narrow(field, value) {
    if (field === "collection") act.change({ collections: [value] });
    else act.filter([...state.filters, { field, test: "is", value }]);
  },
  rank(side, part) {
    change({ [side]: { ...state[side], ...part } });
    searchSoon(true);
  },
  more() {
    const { response, body, first } = results.a;
    load((signal) => api.search({ ...body, explain: true, cursor: response.next_cursor }, signal), (page, error) => {
      if (results.a?.response !== response) return;
      if (error) {
        results.a = { error };
        return;
      }
      const joined = { ...response, hits: [...response.hits, ...page.hits], next_cursor: page.next_cursor, degraded: page.degraded };
      results.a = { ...results.a, response: joined, moved: movements(first.hits, joined.hits) };
    });
  },
  recompute() {
    search("a", true, { cache: "refresh" });
  },
  explore({ id, collection }) {
    change({ view: "graph", node: { id, collection } }, true);
    loadNeighborhood();
    focusContent();
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
    loadView();
  },
  async copy(text, button) {
    let done = "copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // not allowed on a page without TLS: then the text is selected, to be copied by hand
      getSelection().selectAllChildren(button.closest(".copyable").querySelector("pre"));
      done = "selected";
    }
    button.dataset.state = done;
    message = done;
    draw();
    setTimeout(() => delete button.dataset.state, CONFIRMED_MS);
  },
  key(text) {
    if (!api.useKey(text)) {
      keyForm = { isOpen: true, problem: "This cannot be a key: keys have letters, digits and signs of ASCII only." };
      draw();
      return;
    }
    keyForm = { isOpen: false, problem: "" };
    act.reload();
  },
  reload() {
    forget();
    learn();
    loadView();
  },
  failure: (error) => failureView(error, act),
};

function keyView() {
  return html`<form class="key" @submit=${(event) => { event.preventDefault(); act.key(event.target.elements.key.value); event.target.reset(); }}>
    <label>API key <input name="key" type="password" autocomplete="off" required></label>
    <button>Use this key</button>
    ${keyForm.problem ? html`<p role="alert">${keyForm.problem}</p>` : nothing}
    <p class="faint">It stays in the memory of this tab, and is sent to this service only.</p>
  </form>`;
}

/** Instead of hits, where there are none yet. */
function beforeHits() {
  if (known.failure) return act.failure(known.failure);
  if (known.isLoaded && !known.collections.length) return noDocumentsView(act);
  return results.a?.isLoading ? html`<p class="faint" role="status">Searching…</p>` : examplesView(state, act);
}

function resultView() {
  const result = results.a;
  if (result?.error) return act.failure(result.error);
  if (!result?.response) return beforeHits();
  const { response, body } = result;
  const hasNoDocuments = known.isLoaded && !known.failure && !known.collections.length;
  return html`<div class=${result.isLoading ? "waiting" : ""}>
    ${summaryView(response, act)}
    ${response.hits.length ? hitList(result, act) : hasNoDocuments ? noDocumentsView(act) : nothingFoundView(response, state, act)}
    ${copiesView(body, api.address(), api.hasKey(), api.link(), act)}
  </div>`;
}

/** What the forms offer, with the fields of the hits. */
const offered = () => ({ ...known, fields: fieldsOf([...known.documents, ...(results.a?.response?.hits ?? [])]) });

const searchView = () => html`<div class="columns">
    <div class="results">${resultView()}</div>
    <aside aria-label="settings"><details class="settings" ?open=${isWide()}><summary>Settings</summary>
      ${rankingForm("Ranking", state, "a", known.sources, results.a?.response?.explain, act)}
      ${scopeForm(state, offered(), act)}</details></aside>
  </div>`;

const CONTENT = {
  search: searchView,
  compare: () => html`${state.query ? nothing : beforeHits()}${compareView(state, offered(), results, act)}`,
  graph: () => graphView(state, neighborhood, act),
  status: () => statusView(status, act),
};

/** What a screen reader says of the newest response. */
function announcement() {
  if (message) return message;
  const response = results.a?.response;
  return response && !results.a.isLoading ? `${counted(response.hits.length, "hit")} shown` : "";
}

const focusContent = () => root.querySelector("main").focus({ preventScroll: true });

function draw() {
  const hadFocus = document.activeElement !== document.body;
  document.title = state.query ? `${state.query} – Trivium` : "Trivium";
  render(html`<a class="skip" href="#content" @click=${(event) => { event.preventDefault(); focusContent(); }}>Skip to the content</a>
    <header>
      <h1>Trivium</h1>
      <nav aria-label="views">${VIEWS.map((view) => html`<button type="button" aria-current=${view === state.view ? "page" : "false"}
        @click=${() => act.show(view)}>${TITLES[view]}</button>`)}</nav>
      <button type="button" class="plain" aria-expanded=${String(keyForm.isOpen)}
        @click=${() => { keyForm = { isOpen: !keyForm.isOpen, problem: "" }; draw(); }}>${api.hasKey() ? "Change the key" : "API key"}</button>
    </header>
    ${keyForm.isOpen ? keyView() : nothing}
    ${queryForm(state, act)}
    <p class="hidden" role="status">${announcement()}</p>
    <main id="content" tabindex="-1">${CONTENT[state.view]()}</main>`, root);
  message = "";
  if (hadFocus && document.activeElement === document.body) focusContent();  // what had it is gone
}

addEventListener("hashchange", () => {
  clearTimeout(timer);
  forget();
  state = stateOf(location.hash.slice(1));
  draw();
  document.getElementById("query").value = state.query;
  loadView();
});
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=range], [type=checkbox]), select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.getElementById("query").focus();
});

draw();
learn();
loadView();
