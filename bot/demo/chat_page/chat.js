// One user's view of the chat: what the server has told, kept up to date by its websocket.

import { Socket } from "./socket.js";

export class ChatError extends Error {}

/**
 * Events: `reset` (everything may have changed), `post` and `gone` (detail: the post), `mention` (detail: the post),
 * `dialog` (detail: what to show), `connection` (detail: whether the chat answers).
 */
export class Chat extends EventTarget {
  me = null;
  team = null;
  channel = null;
  channels = [];
  commands = [];
  users = new Map();
  posts = new Map();
  unread = new Map();
  #token = "";
  #socket = null;
  #ephemerals = new Map();
  #trigger = "";
  #dialogs = new Map();

  /** Become one of the session's users. */
  async signIn({ name, token }, teamName, channelName) {
    this.#socket?.close();
    this.#token = token;
    this.unread.clear();
    this.me = await this.#get("/users/me");
    for (const user of await this.#get("/users?per_page=200")) this.users.set(user.id, user);
    this.team = await this.#get(`/teams/name/${teamName}`);
    await this.#loadChannels();
    this.commands = await this.#get(`/teams/${this.team.id}/commands/autocomplete`);
    const found = this.channels.find((one) => one.name === channelName);
    await this.enter(found ?? this.channels[0]);
    this.#socket = new Socket(token, (event, data) => this.#onEvent(event, data), (...state) => this.#onState(...state));
    sessionStorage.setItem("user", name);
  }

  /** Read another channel. */
  async enter(channel) {
    const listed = await this.#get(`/channels/${channel.id}/posts?per_page=60&skipFetchThreads=true`);
    this.channel = channel;
    this.unread.delete(channel.id);
    this.posts = new Map(Object.entries(listed.posts));
    for (const post of this.#ephemerals.get(this.me.id) ?? []) this.posts.set(post.id, post);
    this.#tell("reset");
  }

  /** Read what is older than the oldest post that is here; false when there is nothing. */
  async loadOlder() {
    const oldest = this.listed((post) => post.type !== "system_ephemeral")[0];
    const listed = await this.#get(`/channels/${this.channel.id}/posts?per_page=60&skipFetchThreads=true&before=${oldest?.id ?? ""}`);
    for (const post of Object.values(listed.posts)) this.posts.set(post.id, post);
    this.#tell("reset");
    return listed.order.length > 0;
  }

  async loadThread(root) {
    const listed = await this.#get(`/posts/${root}/thread`);
    for (const post of Object.values(listed.posts)) this.#take(post);
  }

  /** The direct channel with somebody. */
  async direct(user) {
    const channel = await this.#call("POST", "/channels/direct", [this.me.id, user.id]);
    await this.#loadChannels();
    return this.channels.find((one) => one.id === channel.id);
  }

  /** Posts of the channel, the oldest first. */
  listed(wanted = () => true) {
    const here = [...this.posts.values()].filter((post) => post.channel_id === this.channel.id && wanted(post));
    return here.sort((one, other) => one.create_at - other.create_at);
  }

  nameOf(user) {
    return this.users.get(user)?.username ?? "somebody";
  }

  titleOf(channel) {
    if (channel.type !== "D") return channel.display_name;
    const other = channel.name.split("__").find((id) => id !== this.me.id);
    return this.nameOf(other ?? this.me.id);
  }

  /** Send what was typed: a slash command is executed, anything else posted. Throws ChatError. */
  async say(text, root = "") {
    const place = { channel_id: this.channel.id, root_id: root };
    if (!text.startsWith("/")) {
      const post = { ...place, message: text, pending_post_id: `${this.me.id}:${Date.now()}` };
      this.#take(await this.#call("POST", "/posts", post));
      return;
    }
    const answer = await this.#call("POST", "/commands/execute", { ...place, team_id: this.team.id, command: text });
    this.#triggered(answer.trigger_id);
  }

  /** Click a button of a post, or choose in its menu. Throws ChatError. */
  async click(post, action, option) {
    const body = { cookie: action.cookie ?? "", selected_option: option ?? "" };
    const answer = await this.#call("POST", `/posts/${post.id}/actions/${action.id}`, body);
    this.#triggered(answer.trigger_id);
  }

  /** Send a dialog off; resolves to its errors. Throws ChatError. */
  submit(opened, submission, cancelled = false) {
    const { callback_id = "", state = "" } = opened.dialog;
    const place = { channel_id: this.channel.id, team_id: this.team.id };
    return this.#call("POST", "/actions/dialogs/submit", { url: opened.url, callback_id, state, ...place, submission, cancelled });
  }

  #get(path) {
    return this.#call("GET", path);
  }

  async #call(method, path, body) {
    let response;
    try {
      response = await fetch(`/api/v4${path}`, {
        method,
        credentials: "omit", // a cookie of another chat on this machine would go before the token
        headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new ChatError("The chat does not answer.");
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new ChatError(answer.message || `The chat answered ${response.status}.`);
    return answer;
  }

  async #loadChannels() {
    const joined = await this.#get(`/users/me/teams/${this.team.id}/channels`);
    this.channels = joined.filter((one) => !one.delete_at);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  // The answer to a command or click and the dialog that it opens come in any order, and on the tab that asked.
  #triggered(trigger) {
    this.#trigger = trigger;
    const opened = this.#dialogs.get(trigger);
    if (opened) this.#open(opened);
  }

  #open(opened) {
    this.#dialogs.clear();
    this.#trigger = "";
    this.#tell("dialog", opened);
  }

  #onState(isOpen, again) {
    this.#tell("connection", isOpen);
    if (isOpen && again) this.enter(this.channel).catch(() => {});
  }

  #onEvent(name, data) {
    switch (name) {
      case "posted": {
        const post = JSON.parse(data.post);
        this.#countReply(post);
        this.#take(post);
        const isForMe = JSON.parse(data.mentions ?? "[]").includes(this.me.id) && post.user_id !== this.me.id;
        if (post.channel_id !== this.channel.id) this.#countUnread(post, isForMe);
        if (isForMe) this.#tell("mention", post);
        break;
      }
      case "post_edited":
        this.#take(JSON.parse(data.post));
        break;
      case "post_deleted": {
        const post = JSON.parse(data.post);
        this.posts.delete(post.id);
        this.#tell("gone", post);
        break;
      }
      case "ephemeral_message": {
        const post = JSON.parse(data.post);
        const mine = this.#ephemerals.get(this.me.id) ?? [];
        this.#ephemerals.set(this.me.id, [...mine, post]);
        this.#take(post);
        break;
      }
      case "open_dialog": {
        const opened = JSON.parse(data.dialog);
        this.#dialogs.set(opened.trigger_id, opened);
        if (opened.trigger_id === this.#trigger) this.#open(opened);
        break;
      }
    }
  }

  #countReply(post) {
    const root = this.posts.get(post.root_id);
    if (!root || this.posts.has(post.id)) return;
    root.reply_count = (root.reply_count ?? 0) + 1;
    this.#tell("post", root);
  }

  #countUnread(post, isForMe) {
    const before = this.unread.get(post.channel_id) ?? { mentions: 0 };
    this.unread.set(post.channel_id, { mentions: before.mentions + (isForMe ? 1 : 0) });
    this.#tell("unread");
    if (!this.channels.some((one) => one.id === post.channel_id)) {
      this.#loadChannels().then(() => this.#tell("unread")).catch(() => {});
    }
  }

  #take(post) {
    const known = this.posts.get(post.id);
    if (post.channel_id !== this.channel.id || (known && known.update_at > post.update_at)) return;
    this.posts.set(post.id, known ? { ...post, reply_count: Math.max(known.reply_count ?? 0, post.reply_count ?? 0) } : post);
    this.#tell("post", this.posts.get(post.id));
  }
}
