// The side panel: the simulated cluster, its clock, and what can be broken about it.

import { element, refill } from "./dom.js";

const SWITCHES = [
  ["chat-down", "Chat down"],
  ["api-slow", "API server slow"],
  ["no-stock", "No H100 in stock"],
  ["over-quota", "Autoscaler over its quota"],
  ["bot-killed", "Bot killed"],
];
const DEEDS = [
  ["lose-node", "Lose a node"],
  ["api-gone", "API answers 410"],
];
const NO_RUNS = "None now. Argo deletes a run some time after its end (ttlStrategy).";
const clockTime = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const nightTime = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const $ = (id) => document.getElementById(id);

export class Panel {
  #view = null;
  #seenAt = 0;
  #switches = new Map();
  #turning = new Set();

  /** `onEnd(isOver)`: the demo itself does not answer any more, or again. */
  constructor(onEnd) {
    $("switches").append(...SWITCHES.map(([name, label]) => this.#switchOf(name, label)));
    const deeds = DEEDS.map(([name, label]) => element("button", { type: "button", className: "text-button", textContent: label, "data-do": name }));
    $("switches").append(element("div", { className: "deeds" }, ...deeds));
    for (const button of $("panel").querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => this.#ask({ do: button.dataset.do }));
    }
    const stream = new EventSource("/demo/panel");
    stream.onmessage = (message) => this.#show(JSON.parse(message.data));
    stream.onopen = () => onEnd(false);
    stream.onerror = () => onEnd(true);
    setInterval(() => this.#tick(), 250);
  }

  #switchOf(name, label) {
    const input = element("input", { type: "checkbox", role: "switch" });
    input.addEventListener("change", () => this.#turn(name, input));
    const state = element("span", { className: "state" });
    this.#switches.set(name, { input, state });
    return element("label", { className: "switch" }, input, label, state);
  }

  /** A view that was made before the switch was turned does not turn it back under the finger. */
  async #turn(name, input) {
    this.#turning.add(name);
    const isDone = await this.#ask({ switch: name, on: input.checked });
    this.#turning.delete(name);
    if (!isDone) input.checked = Boolean(this.#view?.switches[name]);
  }

  /** Whether it was done. */
  async #ask(body) {
    const said = $("panel-said");
    let answer;
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await fetch("/demo/panel", { method: "POST", headers, body: JSON.stringify(body) });
      answer = await response.json();
    } catch {
      answer = { error: "The demo does not answer." };
    }
    said.textContent = answer.error ?? answer.said ?? "";
    said.classList.toggle("is-error", Boolean(answer.error));
    return !answer.error;
  }

  #show(view) {
    this.#view = view;
    this.#seenAt = performance.now();
    for (const [name, { input }] of this.#switches) if (!this.#turning.has(name)) input.checked = view.switches[name];
    this.#switches.get("bot-killed").state.textContent = view.bot;
    refill($("speeds"), [view.clock.speeds, view.clock.speed], () => this.#speeds(view.clock));
    refill($("nightly"), view.nightly, () => [nightlyText(view.nightly)]);
    refill($("pools"), [view.pools, view.waiting], () => [...view.pools.map(poolOf), ...waitingOf(view.waiting)]);
    refill($("runs"), view.runs, () => (view.runs.length ? view.runs.map(runOf) : [element("p", { className: "note", textContent: NO_RUNS })]));
    this.#tick();
  }

  #tick() {
    if (!this.#view) return;
    const { now, speed, skipping } = this.#view.clock;
    const passed = skipping ? 0 : ((performance.now() - this.#seenAt) / 1000) * speed;
    $("clock-time").textContent = `${clockTime.format((now + passed) * 1000)} UTC`;
  }

  #speeds({ speeds, speed, skipping }) {
    const choice = (value) => {
      const input = element("input", { type: "radio", name: "speed", value, checked: !skipping && value === speed, "data-key": `speed-${value}` });
      input.addEventListener("change", () => this.#ask({ speed: value }));
      return element("label", {}, input, value ? `${value}×` : "stop");
    };
    return [element("legend", { textContent: "Speed" }), ...speeds.map(choice)];
  }
}

function nightlyText({ on, next }) {
  return on ? `Nightly is on, next ${nightTime.format(next * 1000)} UTC.` : "Nightly is off.";
}

function poolOf({ name, gpu, maximum, nodes, ordered, error }) {
  const size = `${nodes.length} of ${maximum} ${maximum === 1 ? "node" : "nodes"}`;
  const head = element("p", { className: "pool-name" }, element("b", { textContent: gpu ? `${gpu} · ${name}` : name }), element("span", { textContent: size }));
  const coming = ordered ? [element("p", { className: "node", textContent: `⏳ ${ordered} ordered, booting` })] : [];
  const problem = error ? [element("p", { className: "problem", textContent: `⚠️ ${error}` })] : [];
  return element("section", { className: "pool", "aria-label": `Pool ${name}` }, head, ...problem, ...nodes.map(nodeOf), ...coming);
}

function nodeOf({ name, state, gpus, used, pods }) {
  const squares = Array.from({ length: gpus }, (_, index) => element("span", { className: index < used ? "gpu is-used" : "gpu" }));
  const shown = gpus ? element("span", { className: "gpus", role: "img", "aria-label": `${used} of ${gpus} GPUs in use` }, ...squares) : null;
  const head = element("p", { className: "node-name" }, shown, `${name}${state === "ready" ? "" : ` · ${state}`}`);
  return element("div", { className: "node" }, head, ...pods.map(podOf));
}

const phaseOf = (phase) => {
  const shown = element("span", { className: "phase", textContent: phase });
  shown.dataset.phase = phase;
  return shown;
};

function podOf({ run, template, phase }) {
  const whose = run && ` of ${run.split("-").at(-1)}`;
  return element("p", { className: "pod" }, element("span", { textContent: template + whose }), phaseOf(phase));
}

function waitingOf(pods) {
  if (!pods.length) return [];
  const head = element("p", { className: "pool-name" }, element("b", { textContent: "Waiting for a node" }));
  return [element("section", { className: "pool", "aria-label": "Waiting pods" }, head, ...pods.map(podOf))];
}

function runOf({ name, phase, progress }) {
  const words = element("span", { textContent: name });
  return element("p", { className: "run" }, words, element("span", {}, phaseOf(phase), progress ? ` ${progress}` : ""));
}
