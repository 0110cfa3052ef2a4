// What comes in while one looks elsewhere: read out for a screen reader, shown for a moment where it rings.

import { element } from "./dom.js";
import { plainText } from "./markdown.js";

const KEPT = 6;
const SHOWN_FOR = 9000;

export class Notices {
  #chat;
  #announcer;
  #toasts;
  #heard = new Map();

  constructor(chat, announcer, toasts) {
    this.#chat = chat;
    this.#announcer = announcer;
    this.#toasts = toasts;
  }

  /** Read out a new post, or an edited one whose message has changed; progress in attachments is for the eye. */
  async announce(post) {
    if (post.user_id === this.#chat.me.id && post.type !== "system_ephemeral") return;
    if (this.#heard.get(post.id) === post.message) return;
    this.#heard.set(post.id, post.message);
    const text = await plainText(post.message);
    this.#announcer.append(element("span", { textContent: `${this.#chat.nameOf(post.user_id)}: ${text} ` }));
    while (this.#announcer.children.length > KEPT) this.#announcer.firstChild.remove();
  }

  /** What was there when the page was opened is not news. */
  forget(posts) {
    for (const post of posts) this.#heard.set(post.id, post.message);
  }

  /** Somebody mentions the user. */
  async ring(post, onOpen) {
    const name = element("strong", { textContent: `${this.#chat.nameOf(post.user_id)} mentioned you` });
    const text = element("span", { textContent: await plainText(post.message) });
    const toast = element("button", { type: "button", className: "toast" }, name, text);
    toast.onclick = () => {
      toast.remove();
      onOpen();
    };
    this.#toasts.replaceChildren(toast);
    setTimeout(() => toast.remove(), SHOWN_FOR);
  }
}
