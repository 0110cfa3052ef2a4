// Interactive dialogs: a form that an integration opens, with errors at its fields.
// https://developers.mattermost.com/integrate/plugins/interactive-dialogs/

import { optionsOf } from "./attachment.js";
import { element } from "./dom.js";
import { showMarkdown } from "./markdown.js";

const SUBTYPES = ["text", "email", "number", "password", "tel", "url"];

export class DialogView {
  #chat;
  #dialog;
  #opened = null;
  #fields = [];
  #before = null;

  constructor(chat, dialog) {
    this.#chat = chat;
    this.#dialog = dialog;
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.#cancel();
    });
  }

  show(opened) {
    const { title, introduction_text: introduction, elements, submit_label: submit } = opened.dialog;
    this.#opened = opened;
    this.#before = document.activeElement;
    this.#fields = (elements ?? []).map((one) => fieldOf(this.#chat, one));
    const text = element("div", { className: "text", hidden: !introduction });
    showMarkdown(text, introduction ?? "", this.#chat.me.username);
    this.general = element("p", { className: "error", role: "alert" });
    this.submit = element("button", { type: "submit", className: "submit", textContent: submit || "Submit" });
    const cancel = element("button", { type: "button", textContent: "Close", onclick: () => this.#cancel() });
    const buttons = element("div", { className: "dialog-buttons" }, cancel, this.submit);
    const form = element("form", { noValidate: true }, element("h2", { id: "dialog-title", textContent: title }), text, ...this.#fields.map((one) => one.node), this.general, buttons);
    form.addEventListener("submit", (event) => this.#send(event));
    this.#dialog.replaceChildren(form);
    if (!this.#dialog.open) this.#dialog.showModal();
    (this.#fields[0]?.control ?? this.submit).focus();
  }

  async #send(event) {
    event.preventDefault();
    if (this.submit.ariaDisabled === "true") return;
    const missing = Object.fromEntries(this.#fields.map((one) => [one.name, one.complaint()]).filter(([, text]) => text));
    if (this.#showErrors({ errors: missing })) return;
    const values = Object.fromEntries(this.#fields.map((one) => [one.name, one.value()]));
    this.submit.ariaDisabled = "true";
    try {
      if (!this.#showErrors(await this.#chat.submit(this.#opened, values))) this.#close();
    } catch (problem) {
      this.#showErrors({ error: problem.message });
    }
    this.submit.ariaDisabled = "false";
  }

  /** Put each error at its field; whether there are any. */
  #showErrors({ errors = {}, error = "" }) {
    for (const field of this.#fields) field.complain(errors?.[field.name] ?? "");
    this.general.textContent = error;
    const wrong = this.#fields.find((field) => errors?.[field.name]);
    wrong?.control.focus();
    return Boolean(wrong || error);
  }

  #cancel() {
    if (this.#opened.dialog.notify_on_cancel) this.#chat.submit(this.#opened, {}, true).catch(() => {});
    this.#close();
  }

  #close() {
    this.#dialog.close();
    this.#before?.focus();
  }
}

function fieldOf(chat, definition) {
  const { name, display_name: label, help_text: help, optional, type } = definition;
  const id = `field-${name}`;
  const error = element("p", { className: "error", id: `${id}-error`, "aria-live": "polite" });
  const note = element("p", { className: "help", id: `${id}-help`, textContent: help ?? "", hidden: !help });
  const words = [label, optional ? element("span", { className: "optional", textContent: " (optional)" }) : null];
  const input = inputOf(chat, definition, id);
  input.control.setAttribute("aria-describedby", `${id}-help ${id}-error`);
  const isGroup = type === "radio";
  const head = isGroup ? element("legend", {}, ...words) : element("label", { for: id }, ...words);
  const node = element(isGroup ? "fieldset" : "div", { className: "field" }, head, input.node, note, error);
  const complaint = () => {
    const value = input.value();
    if (!optional && (value === "" || value === null || value === undefined)) return "This field is required.";
    const { min_length: least, max_length: most } = definition;
    if (value && least && value.length < least) return `Minimum input length is ${least}.`;
    if (value && most && value.length > most) return `Maximum input length is ${most}.`;
    return "";
  };
  const complain = (text) => {
    error.textContent = text;
    if (text) input.control.setAttribute("aria-invalid", "true");
    else input.control.removeAttribute("aria-invalid");
  };
  return { name, node, control: input.control, value: input.value, complaint, complain };
}

function inputOf(chat, definition, id) {
  const { type, subtype, placeholder, default: preset = "" } = definition;
  switch (type) {
    case "select": {
      const options = optionsOf(chat, definition).map(({ text, value }) => element("option", { value, textContent: text }));
      const none = element("option", { value: "", textContent: placeholder || "Select one" });
      const control = element("select", { id }, none, ...options);
      control.value = preset ?? "";
      return { node: control, control, value: () => control.value };
    }
    case "bool": {
      const control = element("input", { id, type: "checkbox", checked: preset === "true" });
      return { node: element("label", { className: "choice" }, control, placeholder ?? ""), control, value: () => control.checked };
    }
    case "radio": {
      const radios = (definition.options ?? []).map(({ value }) => element("input", { type: "radio", name: id, value, checked: value === preset }));
      const labels = radios.map((radio, index) => element("label", { className: "choice" }, radio, definition.options[index].text));
      const node = element("div", {}, ...labels);
      return { node, control: radios[0] ?? node, value: () => radios.find((one) => one.checked)?.value ?? "" };
    }
    case "textarea": {
      const control = element("textarea", { id, rows: 4, placeholder: placeholder ?? "", value: preset ?? "" });
      return { node: control, control, value: () => control.value };
    }
    default: {
      const control = element("input", { id, type: SUBTYPES.includes(subtype) ? subtype : "text", placeholder: placeholder ?? "", value: preset ?? "" });
      // A number goes out as a number, as Mattermost's own client sends it.
      const value = () => (control.type === "number" && control.value !== "" ? Number(control.value) : control.value);
      return { node: control, control, value };
    }
  }
}
