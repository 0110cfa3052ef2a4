// A list of posts, in a channel or a thread: kept in order, changed in place, at its end while one reads there.

import { dayOf, element } from "./dom.js";
import { PostView } from "./post.js";

const NEAR = 60;

export class PostList {
  #chat;
  #pane;
  #list = element("div");
  #views = new Map();
  #onReply;
  #belongs;
  #atEnd = true;

  /** `belongs(post)`: whether a post is for this list. `onReply` as PostView has it. */
  constructor(chat, pane, belongs, onReply) {
    this.#chat = chat;
    this.#pane = pane;
    this.#belongs = belongs;
    this.#onReply = onReply;
    let last = 0;
    pane.addEventListener("scroll", () => {
      // A list that grew is no reason to stay behind; only somebody who scrolls up is.
      if (pane.scrollHeight - pane.scrollTop - pane.clientHeight < NEAR) this.#atEnd = true;
      else if (pane.scrollTop < last) this.#atEnd = false;
      last = pane.scrollTop;
    });
    // Texts are rendered a moment after their posts are put in, and edits make cards grow.
    new ResizeObserver(() => this.#follow()).observe(this.#list);
    new ResizeObserver(() => this.#follow()).observe(pane);
  }

  /** Show everything anew, below `head`. */
  reset(...head) {
    this.#views.clear();
    this.#list.replaceChildren(...this.#chat.listed(this.#belongs).map((post) => this.#make(post)));
    this.#pane.replaceChildren(...head, this.#list);
    this.#mark();
    this.#atEnd = true;
    this.#follow();
  }

  /** A post is new, or was edited. */
  put(post) {
    if (!this.#belongs(post)) return;
    const view = this.#views.get(post.id);
    if (view) {
      view.update(post);
      return;
    }
    const article = this.#make(post);
    const later = [...this.#views.values()].filter((one) => one.post.create_at > post.create_at);
    const next = later.sort((one, other) => one.post.create_at - other.post.create_at)[0];
    this.#list.insertBefore(article, next?.article ?? null);
    if (post.user_id === this.#chat.me.id || post.type === "system_ephemeral") this.#atEnd = true;
    this.#mark();
    this.#follow();
  }

  remove(post) {
    this.#views.get(post.id)?.article.remove();
    this.#views.delete(post.id);
    this.#mark();
  }

  /** Bring a post into sight, marked; false when it is not here. */
  find(id) {
    const article = this.#views.get(id)?.article;
    if (!article) return false;
    for (const other of this.#list.querySelectorAll(".is-found")) other.classList.remove("is-found");
    article.classList.add("is-found");
    this.#atEnd = false;
    article.scrollIntoView({ block: "center" });
    return true;
  }

  #make(post) {
    const view = new PostView(this.#chat, post, this.#onReply);
    this.#views.set(post.id, view);
    return view.article;
  }

  /** Put the days between the posts. */
  #mark() {
    for (const old of this.#list.querySelectorAll(".day")) old.remove();
    let last = "";
    for (const article of [...this.#list.children]) {
      const day = dayOf(this.#views.get(article.dataset.post).post.create_at);
      if (day !== last) article.before(element("p", { className: "day", textContent: day }));
      last = day;
    }
  }

  #follow() {
    if (this.#atEnd) this.#pane.scrollTop = this.#pane.scrollHeight;
  }
}
