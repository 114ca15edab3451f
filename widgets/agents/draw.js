// The graphs of a system's agents as plain nodes: a drawing each, whose places the state has, and a
// table that says the same to who does not see it.

import { h } from "../shared/dom.js";
import { clockTime, count, look, plural } from "../shared/format.js";
import { freshBadge } from "../shared/fresh_badge.js";
import { icon } from "../shared/icons.js";

const AGENT_NAME = 20; // so many characters of a node's name are drawn
const AGENT_ENDS = ["failed", "expired", "cancelled", "refused"];

/** What only this page knows. */
export function agentsView() {
  return { stale: null };
}

/** Draw `state` (null before the first one) as `view` sees it. */
export function drawAgents(state, view) {
  const agents = state?.agents ?? [];
  return [
    agentsHeader(state, agents, view),
    h(
      "div",
      { key: "scroll", class: `al-agents-scroll${state?.closed ? " al-agents-last" : ""}`, tabindex: 0, role: "region", "aria-label": "Agents" },
      agents.map(drawAgent),
      agents.length === 0 && h("p", { key: "note", class: "al-agents-note" }, agentsNote(state)),
    ),
  ];
}

function agentsNote(state) {
  if (!state) return "Waiting for the first look.";
  return state.replay || state.past ? "No graph was seen then." : "No graph was made. GraphAgent(lab, graph) is one.";
}

function agentsHeader(state, agents, view) {
  const failed = agents.reduce((total, one) => total + (one.failed ?? 0), 0);
  return h(
    "div",
    { key: "header", class: "al-header" },
    h("span", { class: "al-title" }, icon("system", 14), h("strong", {}, state?.lab || "accel_lab"), h("span", { class: "al-muted" }, "agents")),
    h(
      "span",
      { class: "al-chips" },
      agents.length > 1 && h("span", { key: "count", class: "al-chip al-off" }, plural(agents.length, "agent")),
      failed > 0 && h("span", { key: "failed", class: "al-chip al-bad" }, icon("warn", 12), `${count(failed)} failed`),
    ),
    freshBadge(state, view.stale),
  );
}

function drawAgent(agent) {
  const { name, state, waiting, running, answered, reruns, p50, p99, steps } = agent;
  const { icon: glyph, tone } = look(state);
  return h(
    "section",
    { key: name, class: "al-agents-one", "aria-label": name, "data-agent": name },
    h(
      "div",
      { key: "name", class: "al-agents-name" },
      h("strong", {}, name),
      h("span", { class: `al-word al-${tone}` }, icon(glyph, 12), state),
      h("span", { class: "al-muted" }, `${count(waiting)} waiting, ${count(running)} running, ${count(answered)} answered`),
      AGENT_ENDS.filter((end) => agent[end]).map((end) => h("span", { key: end, class: `al-word al-${end === "cancelled" || end === "refused" ? "warn" : "bad"}` }, icon("warn", 12), `${count(agent[end])} ${end}`)),
      reruns && h("span", { key: "reruns", class: "al-word al-warn" }, icon("restarting", 12), plural(reruns, "rerun")),
      p50 && h("span", { key: "times", class: "al-muted" }, `p50 ${p50}, p99 ${p99}`),
    ),
    h("div", { key: "drawn", class: "al-agents-drawn" }, agentGraph(agent)),
    h("div", { key: "beside", class: "al-agents-beside" }, agentNodes(agent), steps && agentSteps(steps)),
  );
}

/** The graph as a drawing; `agentNodes` says the same. */
function agentGraph({ width, height, nodes, edges }) {
  return h(
    "svg",
    { class: "al-agents-graph", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    h("g", { key: "lines" }, edges.map(agentEdge)),
    h("g", { key: "nodes" }, nodes.map(agentNode)),
    h("g", { key: "labels" }, edges.map(agentLabel)),
  );
}

function agentEdge(edge) {
  const [x, y] = edge.end;
  const head = edge.back ? `${x},${y} ${x + 7},${y - 4} ${x + 7},${y + 4}` : `${x},${y} ${x - 4},${y - 7} ${x + 4},${y - 7}`;
  const names = ["al-agents-edge", edge.chosen && "al-agents-chosen", edge.taken && "al-agents-taken"];
  return h("g", { key: `${edge.from} ${edge.to}`, class: names.filter(Boolean).join(" "), "data-from": edge.from, "data-to": edge.to }, h("path", { d: edge.path }), h("polygon", { points: head }));
}

function agentLabel(edge) {
  const words = agentEdgeWords(edge);
  const [x, y] = edge.label;
  return words && h("text", { key: `${edge.from} ${edge.to}`, class: "al-agents-label", x, y: y + 4 }, words);
}

/** What stands at an edge: whether all must have come, and how often it was taken. */
export function agentEdgeWords({ joins, taken }) {
  return [joins && "all", taken && count(taken)].filter(Boolean).join(" ");
}

/** What stands below a node's name. */
export function agentNodeWords({ running, done, failed }) {
  return [running && `${count(running)} running`, done && `${count(done)} done`, failed && `${count(failed)} failed`].filter(Boolean).join(", ");
}

function agentNode(node) {
  const { name, x, y, width, height, running, failed } = node;
  const isEnd = name === "START" || name === "END";
  const words = isEnd ? "" : agentNodeWords(node);
  const state = running ? "running" : failed ? "failed" : isEnd ? "end" : "idle";
  const shown = name.length > AGENT_NAME ? `${name.slice(0, AGENT_NAME - 1)}…` : name;
  return h(
    "g",
    { key: name, class: `al-agents-node al-agents-${state}`, "data-node": name },
    h("title", {}, [name, words].filter(Boolean).join(": ")),
    h("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: isEnd ? height / 2 : 7 }),
    h("text", { key: "name", class: "al-agents-title", x, y: y + (words ? -2 : 4) }, shown),
    words && h("text", { key: "words", class: "al-agents-words", x, y: y + 14 }, words),
  );
}

function agentNodes({ nodes, edges }) {
  const head = (text, name) => h("th", { key: text, scope: "col", class: name }, text);
  const onward = (name) => edges.filter(({ from }) => from === name).map(({ to, chosen, joins }) => (chosen ? `maybe ${to}` : joins ? `${to} with others` : to));
  return h(
    "table",
    { key: "nodes", class: "al-table al-agents-table" },
    h("caption", { class: "al-sr" }, "Nodes"),
    h("thead", {}, h("tr", {}, head("Node"), head("Running", "al-agents-number"), head("Done", "al-agents-number"), head("Failed", "al-agents-number"), head("Goes on to", "al-sr"))),
    h(
      "tbody",
      {},
      nodes
        .filter(({ name }) => name !== "END")
        .map(({ name, running = 0, done = 0, failed = 0, detail }) =>
          h(
            "tr",
            { key: name, class: running ? "al-agents-at" : null, "data-row": name },
            h("th", { scope: "row", title: detail }, name),
            h("td", { class: "al-agents-number" }, count(running)),
            h("td", { class: "al-agents-number" }, count(done)),
            h("td", { class: `al-agents-number${failed ? " al-agents-bad" : ""}` }, count(failed)),
            h("td", { class: "al-sr" }, onward(name).join(", ")),
          ),
        ),
    ),
  );
}

function agentSteps(steps) {
  return h(
    "ol",
    { key: "steps", class: "al-agents-steps", "aria-label": "Newest steps" },
    steps.map(({ at, run, node }) => h("li", { key: `${at} ${run} ${node}` }, h("time", { class: "al-muted" }, clockTime(at)), h("span", { class: "al-muted" }, `run ${run}`), h("span", {}, node))),
  );
}
