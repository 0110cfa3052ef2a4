// One post as an article, changed in place when the post is edited.

import { attachmentParts } from "./attachment.js";
import { element, refill, timeOf } from "./dom.js";
import { showMarkdown } from "./markdown.js";

const COLOURS = ["#7a3db8", "#1c58d9", "#0b6e63", "#a34300", "#a8286f", "#3d6b1f"];
const CODE = (name) => [...name].reduce((sum, letter) => sum + letter.codePointAt(0), 0);

export class PostView {
  #chat;
  #onReply;

  /** `onReply(post)` opens the thread; without it there is no way into one. */
  constructor(chat, post, onReply) {
    this.#chat = chat;
    this.#onReply = onReply;
    this.post = post;
    this.text = element("div", { className: "text", id: `text-${post.id}-${onReply ? "channel" : "thread"}` });
    this.by = element("div", { className: "by" });
    this.attachments = element("div", { className: "attachments" });
    this.foot = element("div");
    const name = chat.nameOf(post.user_id);
    const colour = COLOURS[CODE(name) % COLOURS.length];
    const avatar = element("div", { className: "avatar", "aria-hidden": "true", textContent: name[0].toUpperCase() });
    avatar.style.backgroundColor = colour;
    const body = element("div", {}, this.by, this.text, this.attachments, this.foot);
    this.article = element("article", { className: "post", "aria-label": `${name}, ${timeOf(post.create_at)}` }, avatar, body);
    this.article.dataset.post = post.id;
    this.article.classList.toggle("is-ephemeral", post.type === "system_ephemeral");
    this.update(post);
  }

  update(post) {
    this.post = post;
    const isEphemeral = post.type === "system_ephemeral";
    refill(this.by, [post.edit_at > 0], () => this.#byline(post, isEphemeral));
    this.text.hidden = !post.message;
    showMarkdown(this.text, post.message, this.#chat.me.username);
    const attachments = post.props?.attachments ?? [];
    // Elements that stay are not put in anew: the one with the focus would lose it.
    while (this.attachments.children.length > attachments.length) this.attachments.lastChild.remove();
    while (this.attachments.children.length < attachments.length) this.attachments.append(element("div"));
    attachments.forEach((one, index) => attachmentParts(this.attachments.children[index], this.#chat, post, one, this.text.id));
    const replies = this.#onReply && !post.root_id ? (post.reply_count ?? 0) : 0;
    refill(this.foot, [replies], () => (replies ? [this.#repliesButton(replies)] : []));
  }

  #byline(post, isEphemeral) {
    const user = this.#chat.users.get(post.user_id);
    const when = new Date(post.create_at);
    const stamp = element("time", { dateTime: when.toISOString(), title: when.toUTCString(), textContent: timeOf(post.create_at) });
    return [
      element("span", { className: "name", textContent: this.#chat.nameOf(post.user_id) }),
      user?.is_bot || post.props?.from_webhook === "true" ? element("span", { className: "bot-tag", textContent: "BOT" }) : null,
      stamp,
      post.edit_at > 0 && !isEphemeral ? element("span", { className: "edited", textContent: "Edited" }) : null,
      isEphemeral ? element("span", { className: "only-you", textContent: "(Only visible to you)" }) : null,
      isEphemeral || !this.#onReply ? null : this.#replyButton(post),
    ].filter(Boolean);
  }

  #replyButton(post) {
    const open = () => this.#onReply(post);
    return element("button", { type: "button", className: "reply-button", textContent: "Reply", onclick: open, "data-key": "reply" });
  }

  #repliesButton(count) {
    const words = count === 1 ? "1 reply" : `${count} replies`;
    const open = () => this.#onReply(this.post);
    return element("button", { type: "button", className: "replies", textContent: `💬 ${words}`, onclick: open, "data-key": "replies" });
  }
}
