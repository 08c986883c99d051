// The form of a search: the query, what it applies to, and how hits are ranked.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { COLLAPSES, MODES, PROFILES, STRATEGIES } from "./state.js";
import { isComplete, TESTS, typed } from "./request.js";
import { decimals, shown } from "./texts.js";

const MAX_WEIGHT = 3;

/** Whether there is room for the settings beside the hits. */
export const isWide = () => matchMedia("(min-width: 60rem)").matches;

const option = (value, chosen, text = value) => html`<option value=${value} .selected=${value === chosen}>${text}</option>`;

// A label around a field would make what is chosen a part of the field's name.
const field = (id, label, input) => html`<div class="field"><label for=${id}>${label}</label>${input}</div>`;

const chooser = (id, label, chosen, values, change, empty = "default") => field(id, label, html`<select id=${id}
  @change=${(event) => change(event.target.value)}>
    ${empty === null ? nothing : option("", chosen, empty)}${withChosen(values, chosen).map((each) => option(each, chosen))}
  </select>`);

/** What may be chosen, and what a link has chosen. */
const withChosen = (values, chosen) => (chosen === "" || values.includes(chosen) ? values : [...values, chosen]);

const numeric = (id, label, value, change, hint) => field(id, label, html`<input id=${id} inputmode="decimal" .value=${value}
  placeholder=${hint} @change=${(event) => change(event.target.value.trim())}>`);

/** The query, with its button. */
export function queryForm(state, act) {
  return html`<form class="query" role="search" @submit=${(event) => { event.preventDefault(); act.submit(event.target.elements.query.value); }}>
    <label class="hidden" for="query">Query</label>
    <input id="query" name="query" type="search" autocomplete="off" spellcheck="false" maxlength="4096" dir="auto"
      placeholder="Search (press / to come here)" .value=${state.query}>
    <button class="primary">Search</button>
  </form>`;
}

/** Weights, strategy, profile, mode and reranker of one ranking. */
export function rankingForm(title, state, side, sources, effective, act) {
  const chosen = state[side];
  const change = (part) => act.rank(side, part);
  const slider = (source, number) => {
    const weight = chosen.weights[source] ?? effective?.weights[source] ?? 1;
    return html`<label class="slider"><span><span class="dot source-${number}" aria-hidden="true"></span>${source}
        <output>${decimals(weight)}</output></span>
      <input type="range" min="0" max=${Math.max(MAX_WEIGHT, weight)} step="0.05" .value=${String(weight)} aria-label="weight of ${source}"
        @input=${(event) => change({ weights: { ...chosen.weights, [source]: Number(event.target.value) } })}></label>`;
  };
  return html`<fieldset class="ranking"><legend>${title}</legend>
    ${chooser(`mode-${side}`, "Mode", chosen.mode, [...MODES, ...sources], (mode) => change({ mode }), null)}
    ${chooser(`profile-${side}`, "Profile", chosen.profile, PROFILES, (profile) => change({ profile }))}
    ${field(`fusion-${side}`, "Fusion", html`<input id="fusion-${side}" list="strategies-${side}" .value=${chosen.fusion} placeholder="of the profile"
      spellcheck="false" @change=${(event) => change({ fusion: event.target.value.trim() })}>
      <datalist id="strategies-${side}">${STRATEGIES.map((each) => html`<option value=${each}></option>`)}</datalist>`)}
    ${chooser(`reranker-${side}`, "Reranker", chosen.rerank, ["on", "off"], (rerank) => change({ rerank }))}
    <div class="sliders">${sources.map(slider)}</div>
    ${Object.keys(chosen.weights).length ? html`<button type="button" class="plain" @click=${() => change({ weights: {} })}>Reset weights</button>` : nothing}
  </fieldset>`;
}

function filterRow(state, fields, index, act) {
  const { field: name, test, value } = state.filters[index];
  const change = (part) => act.filter(state.filters.map((each, number) => (number === index ? { ...each, ...part } : each)));
  const examples = [...(fields.get(name) ?? [])];
  return html`<div class="filter" role="group" aria-label="condition ${index + 1}">
    <input aria-label="Field" list="fields" .value=${name} placeholder="field" spellcheck="false"
      @change=${(event) => change({ field: event.target.value.trim(), value: "" })}>
    <select aria-label="Test" @change=${(event) => change({ test: event.target.value })}>
      ${Object.keys(TESTS).map((each) => option(each, test))}</select>
    ${test === "has a value" ? nothing : html`<input aria-label="Value" list="examples-${index}" .value=${String(value)} placeholder="value"
        @change=${(event) => change({ value: typed(name, event.target.value, fields) })}>
      <datalist id="examples-${index}">${examples.map((each) => html`<option value=${String(each)}></option>`)}</datalist>`}
    ${isComplete(state.filters[index]) ? nothing : html`<span class="faint">not complete: it does not apply</span>`}
    <button type="button" class="plain" @click=${() => act.filter(state.filters.filter((_, number) => number !== index))}>Remove
      <span class="hidden">condition ${index + 1}</span></button>
  </div>`;
}

/** Collections, filters, and what a page of hits is. */
export function scopeForm(state, { collections, fields }, act) {
  const toggle = (name, on) => act.change({ collections: on ? [...state.collections, name] : state.collections.filter((each) => each !== name) });
  const unknown = state.collections.filter((name) => !collections.some((each) => each.name === name));
  return html`<fieldset class="collections"><legend>Collections</legend>
      <div class="long">${[...collections, ...unknown.map((name) => ({ name, documents: 0 }))].map(({ name, documents }) => html`<label class="check">
        <input type="checkbox" .checked=${state.collections.includes(name)} @change=${(event) => toggle(name, event.target.checked)}>
        <bdi>${shown(name)}</bdi> <span class="faint">${documents.toLocaleString("en")}</span></label>`)}</div>
      <p class="faint">${state.collections.length ? nothing : "None chosen: those that are searched by default."}</p>
    </fieldset>
    <fieldset class="filters"><legend>Filter</legend>
      ${state.filters.map((_, index) => filterRow(state, fields, index, act))}
      <datalist id="fields">${[...fields.keys()].map((each) => html`<option value=${each}></option>`)}</datalist>
      <button type="button" class="plain" @click=${() => act.filter([...state.filters, { field: "", test: "is", value: "" }])}>Add a condition</button>
    </fieldset>
    <fieldset class="page"><legend>Hits</legend>
      ${numeric("limit", "Limit", state.limit, (limit) => act.change({ limit }), "10")}
      ${numeric("neighbors", "Neighbors", state.neighbors, (neighbors) => act.change({ neighbors }), "0")}
      ${chooser("collapse", "Collapse", state.collapse, COLLAPSES, (collapse) => act.change({ collapse }))}
      ${numeric("confidence", "Minimum confidence", state.minConfidence, (minConfidence) => act.change({ minConfidence }), "0 to 1")}
    </fieldset>`;
}
