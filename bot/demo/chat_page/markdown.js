// Markdown as HTML. The server renders it (markdown-it-py); texts asked for at the same moment go in one request.

const rendered = new Map();
const current = new WeakMap();
const KEPT = 2000;
let waiting = null;

function htmlOf(text) {
  if (rendered.has(text)) return Promise.resolve(rendered.get(text));
  waiting ??= { texts: new Set(), answer: new Promise((resolve) => queueMicrotask(resolve)).then(askForAll) };
  waiting.texts.add(text);
  return waiting.answer.then((found) => found.get(text));
}

async function askForAll() {
  const texts = [...waiting.texts];
  waiting = null;
  const response = await fetch("/demo/markdown", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ texts }),
  });
  const { html } = await response.json();
  if (rendered.size > KEPT) rendered.clear();
  texts.forEach((text, index) => rendered.set(text, html[index]));
  return new Map(texts.map((text, index) => [text, html[index]]));
}

/** Show a text in an element, marking mentions of `me`. What comes too late for a newer text is dropped. */
export async function showMarkdown(target, text, me) {
  if (current.get(target) === text) return;
  current.set(target, text);
  let html;
  try {
    html = await htmlOf(text);
  } catch {
    target.textContent = text; // the demo has ended; better plain than nothing
    return;
  }
  if (current.get(target) !== text) return;
  target.innerHTML = html; // made by a parser that takes no HTML of the author's
  for (const mention of target.querySelectorAll(".mention")) {
    mention.classList.toggle("is-me", [me, "all", "channel", "here"].includes(mention.dataset.user));
  }
}

/** A text as it is read out. */
export async function plainText(text) {
  const scratch = document.createElement("template");
  scratch.innerHTML = await htmlOf(text).catch(() => "");
  return scratch.content.textContent.trim();
}
