// Builds DOM nodes. Text is always a text node: nothing that a person or a file wrote is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

const STROKES = {
  attach: "M15.5 8.5l-6.2 6.2a2.6 2.6 0 0 1-3.7-3.7l6.8-6.8a4 4 0 0 1 5.7 5.7l-7 7a5.5 5.5 0 0 1-7.8-7.8l5.7-5.7",
  send: "M4 10h11M10.5 5l5 5-5 5",
  up: "M7 17V9l3.5-6a1.8 1.8 0 0 1 1.8 2.2L11.8 8H16a1.5 1.5 0 0 1 1.5 1.8l-1.1 5.7A1.8 1.8 0 0 1 14.6 17zM7 17H3.5V9H7",
  down: "M13 3v8l-3.5 6a1.8 1.8 0 0 1-1.8-2.2L8.2 12H4a1.5 1.5 0 0 1-1.5-1.8l1.1-5.7A1.8 1.8 0 0 1 5.4 3zM13 3h3.5v8H13",
  edit: "M4 16l.8-3.4L13 4.4a1.6 1.6 0 0 1 2.3 0l.3.3a1.6 1.6 0 0 1 0 2.3L7.4 15.2z",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10",
  close: "M5 5l10 10M15 5L5 15",
  back: "M12 4l-6 6 6 6",
  next: "M8 4l6 6-6 6",
  plus: "M10 4v12M4 10h12",
  lock: "M5.5 9h9v7h-9zM7.5 9V6.5a2.5 2.5 0 0 1 5 0V9",
  hash: "M8 3.5L6.5 16.5M13.5 3.5L12 16.5M4 7.5h12.5M3.5 12.5H16",
  person: "M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4.5 16.5a5.5 5.5 0 0 1 11 0",
  file: "M6 3h5l4 4v10H6zM11 3v4h4",
  gear: "M4 6h6M14 6h2M4 14h2M10 14h6M12 4v4M8 12v4",
  link: "M8 5H5v10h10v-3M11 5h4v4M15 5l-6 6",
  book: "M4 4.5h5a2 2 0 0 1 1 .8 2 2 0 0 1 1-.8h5v11h-5a2 2 0 0 0-1 .8 2 2 0 0 0-1-.8H4z",
};

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  path.setAttribute("d", STROKES[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, onclick, attributes = {}) {
  return el(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...attributes },
    icon(name),
  );
}

// A name that somebody else chose: its direction and its control characters stay within it.
export function name(text, attributes = {}) {
  return el("bdi", attributes, text);
}

export function replaceFocused(old, fresh) {
  const key = old.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  old.replaceWith(fresh);
  if (key) fresh.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus();
}

// Up and down, Home and End move through a list; one item at a time is in the Tab order.
export function arrowKeys(list, selector) {
  list.addEventListener("keydown", (event) => {
    const items = [...list.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (at < 0 || to === undefined || !items[to]) return;
    event.preventDefault();
    rove(items, items[to]);
    items[to].focus();
  });
}

export function rove(items, current) {
  const first = current ?? items[0];
  for (const item of items) item.tabIndex = item === first ? 0 : -1;
}

export function announce(text) {
  document.getElementById("announcer").textContent = text.slice(0, 600);
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

export function when(seconds) {
  if (!seconds) return "";
  const then = new Date(seconds * 1000);
  const now = new Date();
  if (then.toDateString() === now.toDateString()) return TIME.format(then);
  return (then.getFullYear() === now.getFullYear() ? DAY : DATE).format(then);
}

export function time(seconds, attributes = {}) {
  if (!seconds) return null;
  const then = new Date(seconds * 1000);
  return el("time", { datetime: then.toISOString(), title: then.toLocaleString(), ...attributes }, when(seconds));
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}
