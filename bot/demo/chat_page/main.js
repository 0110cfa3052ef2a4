// The page: puts chat, panes and panel together, and follows links.

import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { DialogView } from "./dialog.js";
import { element } from "./dom.js";
import { Notices } from "./notices.js";
import { Panel } from "./panel.js";
import { PostList } from "./posts.js";
import { themeButton } from "./theme.js";

const TRIES = ["/gputest models=all epochs=5", "/gputest", "/nightly enable", "/gpu", "/gputest help"];
const $ = (id) => document.getElementById(id);

const session = await (await fetch("/demo/session")).json();
const chat = new Chat();
const notices = new Notices(chat, $("announcer"), $("toasts"));
const dialog = new DialogView(chat, $("dialog"));
let thread = "";
let opener = null;
let isOver = false;

const channelPosts = new PostList(chat, $("posts"), (post) => !post.root_id || (post.type === "system_ephemeral" && post.root_id !== thread), openThread);
const threadPosts = new PostList(chat, $("thread-posts"), (post) => thread !== "" && (post.id === thread || post.root_id === thread));
const composer = new Composer(chat, $("composer"), () => "");
const threadComposer = new Composer(chat, $("thread-composer"), () => thread);
threadComposer.name("Reply to this thread");

chat.addEventListener("reset", showChannel);
chat.addEventListener("post", ({ detail: post }) => {
  channelPosts.put(post);
  threadPosts.put(post);
  notices.announce(post);
});
chat.addEventListener("gone", ({ detail: post }) => {
  channelPosts.remove(post);
  threadPosts.remove(post);
  if (post.id === thread) closeThread();
});
chat.addEventListener("mention", ({ detail: post }) => {
  const isSeen = post.root_id === thread || (post.channel_id === chat.channel.id && chat.channel.type === "D");
  if (post.root_id && !isSeen) notices.ring(post, () => showPost(post.id));
});
chat.addEventListener("unread", showChannels);
chat.addEventListener("dialog", ({ detail: opened }) => dialog.show(opened));
chat.addEventListener("connection", ({ detail: isOpen }) => showConnection(isOpen));

function showChannel() {
  const title = chat.titleOf(chat.channel);
  document.title = title;
  $("channel-name").textContent = title;
  composer.name(`Message ${title}`);
  notices.forget(chat.listed());
  channelPosts.reset(olderButton(), intro(title));
  if (thread && !chat.posts.has(thread)) closeThread();
  else threadPosts.reset();
  if (chat.channel.type !== "D") history.replaceState(null, "", `/${chat.team.name}/channels/${chat.channel.name}`);
  showChannels();
}

function olderButton() {
  const isMore = chat.listed().length >= 60;
  const load = async (event) => {
    if (!(await chat.loadOlder())) event.target.remove();
  };
  return element("button", { type: "button", className: "text-button older", textContent: "Older messages", hidden: !isMore, onclick: load });
}

function intro(title) {
  const known = TRIES.filter((line) => chat.commands.some((one) => line.split(" ")[0] === `/${one.trigger}`));
  const tries = known.map((line) => element("button", { type: "button", textContent: line, onclick: () => composer.fill(line) }));
  return element(
    "section",
    { className: "intro", "aria-label": "Beginning of the channel" },
    element("h2", { textContent: title }),
    element("p", { textContent: "Here the bot takes commands and shows its runs. Nothing of this is real: the cluster and the chat live in one process on this machine. Try:" }),
    element("div", { className: "tries" }, ...tries),
  );
}

function showChannels() {
  const link = (channel) => {
    const unread = chat.unread.get(channel.id);
    const badge = unread ? element("span", { className: "badge", textContent: unread.mentions || "•", "aria-label": "unread" }) : null;
    const go = (event) => {
      event.preventDefault();
      enter(channel);
    };
    const href = channel.type === "D" ? "#" : `/${chat.team.name}/channels/${channel.name}`;
    const shown = element("a", { href, onclick: go }, element("span", { textContent: chat.titleOf(channel) }), badge);
    if (channel.id === chat.channel.id) shown.setAttribute("aria-current", "page");
    return element("li", {}, shown);
  };
  const open = chat.channels.filter((one) => one.type !== "D");
  $("channel-list").replaceChildren(...open.map(link));
  $("direct-list").replaceChildren(...[...chat.users.values()].filter((user) => user.is_bot).map(directLink));

  function directLink(user) {
    const channel = chat.channels.find((one) => one.type === "D" && one.name.split("__").includes(user.id));
    if (channel) return link(channel);
    const go = async (event) => {
      event.preventDefault();
      enter(await chat.direct(user));
    };
    return element("li", {}, element("a", { href: "#", onclick: go, textContent: user.username }));
  }
}

async function enter(channel) {
  closeThread();
  toggle("channels", false);
  await chat.enter(channel);
  composer.focus();
}

async function openThread(post) {
  opener = document.activeElement;
  thread = post.root_id || post.id;
  $("toasts").replaceChildren();
  $("thread").hidden = false;
  document.body.classList.add("has-thread");
  threadPosts.reset();
  threadComposer.focus();
  await chat.loadThread(thread).catch(() => {});
}

function closeThread() {
  if (!thread) return;
  thread = "";
  $("thread").hidden = true;
  document.body.classList.remove("has-thread");
  if (opener?.isConnected) opener.focus();
  else composer.focus();
}

/** Go to a post, in its thread if it is a reply. */
async function showPost(id) {
  const post = chat.posts.get(id);
  if (!post?.root_id) {
    channelPosts.find(id);
    return;
  }
  await openThread(post);
  threadPosts.find(id);
}

function showConnection(isOpen) {
  const text = isOver ? "The demo has ended. Start it again with make demo, and load this page anew." : "The chat does not answer. Trying again …";
  $("connection").textContent = isOpen && !isOver ? "" : text;
  $("connection").hidden = isOpen && !isOver;
}

function toggle(name, isShown) {
  const shown = document.body.classList.toggle(`shows-${name}`, isShown);
  $(`open-${name}`).setAttribute("aria-expanded", String(shown));
  return shown;
}

$("open-channels").addEventListener("click", () => toggle("channels"));
$("open-panel").addEventListener("click", () => {
  if (toggle("panel")) $("close-panel").focus();
});
$("close-panel").addEventListener("click", () => {
  toggle("panel", false);
  $("open-panel").focus();
});
$("close-thread").addEventListener("click", closeThread);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || $("dialog").open) return;
  if (document.body.classList.contains("shows-panel")) $("close-panel").click();
  else if (document.body.classList.contains("shows-channels")) toggle("channels", false);
  else closeThread();
});

// Links to posts and channels of this chat lead there, and not to a new tab.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || link.origin !== location.origin || event.defaultPrevented) return;
  const [, post] = link.pathname.match(/\/pl\/(\w{26})$/) ?? [];
  const channel = chat.channels.find((one) => one.name === link.dataset.channel);
  if (!post && !channel) return;
  event.preventDefault();
  if (post) showPost(post);
  else enter(channel);
});

themeButton($("theme"));
new Panel((over) => {
  isOver = over;
  showConnection(!over);
});

const users = session.users.map(({ name, may }) => element("option", { value: name, textContent: name, title: may }));
const switcher = $("user");
switcher.append(...users);
switcher.value = sessionStorage.getItem("user") ?? session.users[0].name;
const place = location.pathname.match(/\/channels\/([\w-]+)$/)?.[1] ?? session.channel;
const wanted = location.pathname.match(/\/pl\/(\w{26})$/)?.[1];

async function signIn() {
  const user = session.users.find((one) => one.name === switcher.value) ?? session.users[0];
  try {
    await chat.signIn(user, session.team, chat.channel?.name ?? place);
  } catch {
    showConnection(false);
    setTimeout(signIn, 2000);
  }
}

switcher.addEventListener("change", async () => {
  closeThread();
  await signIn();
});
await signIn();
if (wanted) await showPost(wanted);
composer.focus();
