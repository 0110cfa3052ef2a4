// Elements without a framework.

/** An element with properties, attributes (keys with a dash, and `role`), listeners (`onclick`) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const shown = new WeakMap();

/** Fill an element anew, unless what it shows was made from the same data. Focus inside survives by `data-key`. */
export function refill(parent, data, make) {
  const text = JSON.stringify(data);
  if (shown.get(parent) === text) return;
  shown.set(parent, text);
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...make());
  if (key !== undefined) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const dayName = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" });

/** 23:02 */
export const timeOf = (millis) => clockTime.format(millis);

/** Monday 30 November */
export const dayOf = (millis) => dayName.format(millis).replace(",", "");
