// The neighborhood of a document, drawn and as a list.

import { html, nothing, svg } from "./vendor/lit-html/lit-html.js";
import { counted, isolated, shown, titleOf } from "./texts.js";

const WIDTH = 800;
const HEIGHT = 560;
const MARGIN = 50;
const MAX_SCALE = 2;
const STEPS = 300;
const LABEL = 22;
const END = 15;

const short = (text) => (text.length > LABEL ? `${text.slice(0, LABEL - 1)}…` : text);

/** The nodes with their places, and the edges, from the response of the API. The same each time: d3 has its own random numbers. */
export function layout({ documents, names, links, mentions }) {
  const nodes = [
    ...documents.map((document, index) => ({ kind: "document", document, label: shown(titleOf(document)), isMiddle: index === 0 })),
    ...names.map((name) => ({ kind: "name", name, label: shown(name.name) })),
  ];
  const edges = [...joined(links), ...mentions.map(({ document, name }) => ({ source: document, target: documents.length + name }))];
  const { d3 } = globalThis;
  d3.forceSimulation(nodes)
    .force("link", d3.forceLink(edges).distance(({ types }) => (types ? 120 : 80)))
    .force("charge", d3.forceManyBody().strength(-380))
    .force("collide", d3.forceCollide(26))
    .force("x", d3.forceX(WIDTH / 2).strength(0.06))
    .force("y", d3.forceY(HEIGHT / 2).strength(0.09))
    .stop()
    .tick(STEPS);
  fit(nodes, "x", WIDTH);
  fit(nodes, "y", HEIGHT);
  return { nodes, edges };
}

/** The links between two documents as one edge: their types, and in which directions they lead. */
function joined(links) {
  const edges = new Map();
  for (const { source, target, type } of links) {
    const [one, other] = source < target ? [source, target] : [target, source];
    const edge = edges.get(`${one} ${other}`) ?? { source: one, target: other, types: new Set(), there: false, back: false };
    edge.types.add(type);
    edge[source === one ? "there" : "back"] = true;
    edges.set(`${one} ${other}`, edge);
  }
  return edges.values();
}

/** Spread the nodes over the drawing along one axis, at most to twice their distances. */
function fit(nodes, axis, size) {
  const places = nodes.map((node) => node[axis]);
  const [least, most] = [Math.min(...places), Math.max(...places)];
  const scale = Math.min((size - 2 * MARGIN) / (most - least || 1), MAX_SCALE);
  for (const node of nodes) node[axis] = size / 2 + (node[axis] - (least + most) / 2) * scale;
}

const pressed = (action) => (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  action();
};

function nodeView(node, follow) {
  const action = () => follow(node);
  const described = node.kind === "name"
    ? `name ${node.label}, in ${counted(node.name.documents, "document")}: search for it`
    : `document ${node.label}${node.isMiddle ? ", the middle" : ": show its neighborhood"}`;
  const shape = node.kind === "name" ? svg`<rect x="-7" y="-7" width="14" height="14" transform="rotate(45)"></rect>` : svg`<circle r=${node.isMiddle ? 13 : 9}></circle>`;
  return svg`<g class="node ${node.kind} ${node.isMiddle ? "middle" : ""}" transform="translate(${node.x} ${node.y})" tabindex="0"
    role="button" aria-label=${described} @click=${action} @keydown=${pressed(action)}>
    ${shape}<text y="26">${short(node.label)}</text></g>`;
}

function edgeView({ source, target, types, there, back }) {
  if (!types) return svg`<line class="mention" x1=${source.x} y1=${source.y} x2=${target.x} y2=${target.y}></line>`;
  const length = Math.hypot(target.x - source.x, target.y - source.y) || 1;
  const [dx, dy] = [((target.x - source.x) * END) / length, ((target.y - source.y) * END) / length];
  return svg`<line class="link" x1=${source.x + dx} y1=${source.y + dy} x2=${target.x - dx} y2=${target.y - dy}
      marker-start=${back ? "url(#arrow)" : "none"} marker-end=${there ? "url(#arrow)" : "none"}></line>
    <text class="type" x=${(source.x + target.x) / 2} y=${(source.y + target.y) / 2 - 4}>${short(shown([...types].join(", ")))}</text>`;
}

function listView({ documents, names, links, mentions }, follow) {
  const button = (document) => html`<button type="button" class="plain" @click=${() => follow({ kind: "document", document })}>${isolated(titleOf(document))}</button>`;
  const others = (number) => mentions.filter((each) => each.name === number && each.document !== 0).map((each) => documents[each.document]);
  return html`<section class="list" aria-label="the same as a list">
    <h3>Links</h3>
    ${links.length ? html`<ul>${links.map(({ source, target, type }) => html`<li>
      ${source === 0 ? html`<i>${isolated(type)}</i> → ${button(documents[target])}` : html`${button(documents[source])} → <i>${isolated(type)}</i> → this document`}</li>`)}</ul>`
      : html`<p class="faint">It has no links, and no document links to it.</p>`}
    <h3>Names</h3>
    ${names.length ? html`<ul>${names.map((name, number) => html`<li>
      <button type="button" class="plain" @click=${() => follow({ kind: "name", name })}>${isolated(name.name)}</button>
      <span class="faint">in ${counted(name.documents, "document")}</span>
      ${others(number).length ? html`<ul>${others(number).map((each) => html`<li>${button(each)}</li>`)}</ul>` : nothing}</li>`)}</ul>`
      : html`<p class="faint">No name was found in it.</p>`}
  </section>`;
}

/** The view. `act.follow` is called with the node to go to. */
export function graphView(state, neighborhood, act) {
  if (!state.node) return html`<p class="empty">Search first, and choose <b>Neighborhood</b> at a hit.</p>`;
  if (!neighborhood) return html`<p class="faint" role="status">Loading…</p>`;
  if (neighborhood.error) return act.failure(neighborhood.error);
  const { found, nodes, edges } = neighborhood;
  const [middle] = found.documents;
  return html`<div class="graph">
    <div class="drawing">
      <h2>${isolated(titleOf(middle))}</h2>
      <p class="faint">${isolated(middle.collection)} · ${counted(found.links.length, "link")}, ${counted(found.names.length, "name")}${found.omitted
        ? ` (${found.omitted.toLocaleString("en")} more are not shown)` : nothing}. Choose a document to go there, a name to search for it.</p>
      <div class="canvas"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="group" aria-label="neighborhood of ${shown(titleOf(middle))}">
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"></path></marker></defs>
        ${edges.map(edgeView)}${nodes.map((node) => nodeView(node, act.follow))}
      </svg></div>
    </div>
    ${listView(found, act.follow)}
  </div>`;
}
