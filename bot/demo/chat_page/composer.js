// The message field: Enter sends, a slash offers the commands that the server knows.

import { element } from "./dom.js";

export class Composer {
  #chat;
  #form;
  #rootOf;
  #text;
  #error = element("p", { className: "composer-error", role: "alert" });
  #hint = element("p", { className: "command-hint" });
  #list;
  #offered = [];
  #chosen = 0;

  /** `rootOf()`: the thread that is written in, "" for the channel. */
  constructor(chat, form, rootOf) {
    this.#chat = chat;
    this.#form = form;
    this.#rootOf = rootOf;
    const id = form.id;
    this.#list = element("div", { className: "suggestions", id: `${id}-suggestions`, role: "listbox", "aria-label": "Commands", hidden: true });
    this.#text = element("textarea", { id: `${id}-text`, rows: 1, "aria-autocomplete": "list", "aria-controls": this.#list.id, "aria-haspopup": "listbox" });
    const label = element("label", { className: "sr-only", for: this.#text.id });
    this.label = label;
    const send = element("button", { className: "send", type: "submit", textContent: "Send" });
    form.append(this.#list, this.#hint, this.#error, element("div", { className: "composer-box" }, label, this.#text, send));
    form.addEventListener("submit", (event) => this.#send(event));
    this.#text.addEventListener("input", () => this.#offer());
    this.#text.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("blur", () => this.#close());
  }

  name(label) {
    this.label.textContent = label;
    this.#text.placeholder = label;
  }

  /** Put a text in, for somebody to send. */
  fill(text) {
    this.#text.value = text;
    this.focus();
    this.#close();
    this.#explain();
  }

  focus() {
    this.#text.focus();
  }

  async #send(event) {
    event.preventDefault();
    const text = this.#text.value.trimEnd();
    if (!text.trim()) return;
    this.#text.value = "";
    this.#error.textContent = "";
    this.#close();
    this.#explain();
    try {
      await this.#chat.say(text, this.#rootOf());
    } catch (problem) {
      this.#error.textContent = problem.message;
      if (!this.#text.value) this.#text.value = text;
    }
  }

  #onKey(event) {
    if (event.isComposing) return;
    const isOpen = !this.#list.hidden;
    const typed = this.#text.value === `/${this.#offered[this.#chosen]?.trigger}`;
    if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.#choose((this.#chosen + step + this.#offered.length) % this.#offered.length);
    } else if (isOpen && event.key === "Escape") {
      this.#close();
    } else if (isOpen && !event.shiftKey && (event.key === "Tab" || (event.key === "Enter" && !typed))) {
      this.#complete(this.#chosen);
    } else if (event.key === "Enter" && !event.shiftKey) {
      this.#form.requestSubmit();
    } else {
      return;
    }
    event.preventDefault();
  }

  #offer() {
    this.#error.textContent = "";
    const [, word] = this.#text.value.match(/^\/(\S*)$/) ?? [];
    this.#offered = word === undefined ? [] : this.#known().filter((one) => one.trigger.startsWith(word.toLowerCase()));
    this.#list.replaceChildren(...this.#offered.map((command, index) => this.#suggestion(command, index)));
    this.#list.hidden = this.#offered.length === 0;
    if (this.#list.hidden) this.#close();
    else this.#choose(0);
    this.#explain();
  }

  /** The shorter of two names first, so that Enter after a whole name takes just that. */
  #known() {
    return this.#chat.commands.toSorted((one, other) => (one.trigger < other.trigger ? -1 : 1));
  }

  #suggestion(command, index) {
    const usage = element("p", {}, element("b", { textContent: `/${command.trigger}` }), " ", element("span", { className: "hint", textContent: command.auto_complete_hint }));
    const option = element("div", { className: "suggestion", role: "option", id: `${this.#list.id}-${index}` }, usage, element("p", { textContent: command.auto_complete_desc }));
    option.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the field keeps its focus
      this.#complete(index);
    });
    return option;
  }

  #choose(index) {
    this.#chosen = index;
    [...this.#list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    this.#text.setAttribute("aria-activedescendant", `${this.#list.id}-${index}`);
    this.#list.children[index].scrollIntoView({ block: "nearest" });
  }

  #complete(index) {
    this.#text.value = `/${this.#offered[index].trigger} `;
    this.#close();
    this.#explain();
  }

  #close() {
    this.#list.hidden = true;
    this.#text.removeAttribute("aria-activedescendant");
  }

  /** Once a command is named: how it goes on. */
  #explain() {
    const [, trigger] = this.#text.value.match(/^\/(\S+)\s/) ?? [];
    const command = this.#chat.commands.find((one) => one.trigger === trigger?.toLowerCase());
    this.#hint.textContent = command ? `/${command.trigger} ${command.auto_complete_hint}` : "";
    this.#hint.hidden = !command;
  }
}
