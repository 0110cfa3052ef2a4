// Message attachments: a bar of colour, text, fields, buttons and menus.
// https://developers.mattermost.com/integrate/reference/message-attachments/

import { element, refill } from "./dom.js";
import { showMarkdown } from "./markdown.js";

const NAMED = { good: "#2e8540", warning: "#d99a00", danger: "#c9372c" };

/** Show an attachment in its element; what has not changed stays, so that a button keeps its focus. */
export function attachmentParts(target, chat, post, attachment, describedBy) {
  if (!target.firstChild) {
    target.className = "attachment";
    target.append(...["head", "text", "fields", "footer", "actions", "action-error"].map((name) => element("div", { className: name })));
    target.lastChild.setAttribute("role", "alert");
  }
  const [head, text, fields, footer, actions, error] = target.children;
  const colour = NAMED[attachment.color] ?? attachment.color ?? "";
  target.style.borderLeftColor = CSS.supports("color", colour) ? colour : "";
  refill(head, [attachment.pretext, attachment.title, attachment.title_link], () => heading(attachment));
  head.hidden = !head.firstChild;
  text.hidden = !attachment.text;
  showMarkdown(text, attachment.text ?? "", chat.me.username);
  refill(fields, attachment.fields ?? [], () => (attachment.fields?.length ? [fieldList(attachment.fields, chat)] : []));
  refill(footer, attachment.footer ?? "", () => (attachment.footer ? [attachment.footer] : []));
  footer.hidden = !attachment.footer;
  const offered = attachment.actions ?? [];
  actions.hidden = offered.length === 0;
  refill(actions, offered, () => offered.map((action) => actionOf(chat, post, action, error, describedBy)));
}

function heading({ pretext, title, title_link: link }) {
  const shown = link?.match(/^https?:/) ? element("a", { href: link, textContent: title, target: "_blank", rel: "noopener noreferrer" }) : title;
  return [
    pretext ? element("p", { textContent: pretext }) : null,
    title ? element("p", { className: "title" }, shown) : null,
  ].filter(Boolean);
}

function fieldList(fields, chat) {
  const pairs = fields.map(({ title, value }) => {
    const shown = element("dd", { className: "text" });
    showMarkdown(shown, String(value ?? ""), chat.me.username);
    return element("div", {}, element("dt", { textContent: title ?? "" }), shown);
  });
  return element("dl", { className: "fields" }, ...pairs);
}

function actionOf(chat, post, action, error, describedBy) {
  const run = async (control, option) => {
    if (control.ariaDisabled === "true") return;
    control.ariaDisabled = "true";
    error.textContent = "";
    try {
      await chat.click(post, action, option);
    } catch (problem) {
      error.textContent = problem.message;
    }
    control.ariaDisabled = "false";
  };
  if (action.type === "select") return menuOf(chat, action, run);
  const button = element("button", { type: "button", className: "action", textContent: action.name, "data-key": action.id });
  button.setAttribute("aria-describedby", describedBy);
  button.dataset.style = action.style ?? "default";
  button.onclick = () => run(button);
  return button;
}

function menuOf(chat, action, run) {
  const choices = optionsOf(chat, action).map(({ text, value }) => element("option", { value, textContent: text }));
  const first = element("option", { value: "", textContent: action.name, disabled: true, selected: true });
  const menu = element("select", { className: "action", "aria-label": action.name, "data-key": action.id }, first, ...choices);
  if (action.default_option) menu.value = action.default_option;
  menu.onchange = () => run(menu, menu.value);
  return menu;
}

/** The options of a menu or a dialog's select: its own, or all users or channels. */
export function optionsOf(chat, { data_source: source, options }) {
  if (source === "users") return [...chat.users.values()].map((user) => ({ text: `@${user.username}`, value: user.id }));
  if (source === "channels") return chat.channels.map((one) => ({ text: chat.titleOf(one), value: one.id }));
  return options ?? [];
}
