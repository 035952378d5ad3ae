// Our own subset of Markdown, as DOM nodes: paragraphs, headings, lists, quotes, tables, fences, bold, italics, struck
// text, code and links. A line break stays one. HTML is text. Time is linear in the text for each level of nesting.

import { el } from "./dom.js";
import { linkTarget } from "./place.js";

const DEEPEST = 6;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})(?:\s|$)/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+•]|\d{1,9}[.)])( +|$)/;
const DELIMITER_ROW = /^[\s|:-]+$/;
const ADDRESS = /https?:\/\/[^\s<>"'`|]+/y;
const ENDS_ADDRESS = new Set([" ", "\n", "["]);
const CITATION = /\[(\d{1,3})\]/y;
const WORD = /[\p{L}\p{N}]/u;
const LATIN = /[A-Za-z0-9]/;

// `citation` is asked for the node of each [n]; null leaves the text.
export function markdown(text, citation = () => null) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocks(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0, citation));
  return fragment;
}

function blocks(lines, depth, citation) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const reader = depth < DEEPEST ? READERS.find((each) => each.starts(lines, at)) : undefined;
    const [node, next] = (reader ?? PARAGRAPH).read(lines, at, depth, citation);
    found.push(node);
    at = next;
  }
  return found;
}

const fence = {
  starts: (lines, at) => FENCE.test(lines[at]),
  read(lines, at) {
    const [, marks, language] = lines[at].match(FENCE);
    let end = at + 1;
    while (end < lines.length && !closes(lines[end], marks)) end += 1;
    const code = el("code", {}, lines.slice(at + 1, end).join("\n"));
    return [el("pre", { "data-language": language || null, tabindex: "0" }, code), end + 1];
  },
};

function closes(line, marks) {
  const trimmed = line.trim();
  return trimmed.length >= marks.length && trimmed === marks[0].repeat(trimmed.length);
}

const heading = {
  starts: (lines, at) => HEADING.test(lines[at]),
  read(lines, at, depth, citation) {
    const level = lines[at].match(HEADING)[1].length;
    let text = lines[at].trim().slice(level).trim();
    if (text.endsWith("#")) text = stripClosing(text);
    return [el(`h${Math.min(level + 2, 6)}`, { class: `h${level}` }, inline(text, 0, citation)), at + 1];
  },
};

function stripClosing(text) {
  let end = text.length;
  while (end > 0 && text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trimEnd() : text;
}

const rule = {
  starts: (lines, at) => RULE.test(lines[at]),
  read: (lines, at) => [el("hr"), at + 1],
};

const quote = {
  starts: (lines, at) => QUOTE.test(lines[at]),
  read(lines, at, depth, citation) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end])) end += 1;
    const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
    return [el("blockquote", {}, blocks(inner, depth + 1, citation)), end];
  },
};

const table = {
  starts: (lines, at) => lines[at].includes("|") && at + 1 < lines.length && isDelimiterRow(lines[at + 1]),
  read(lines, at, depth, citation) {
    const alignments = cells(lines[at + 1]).map(alignment);
    let end = at + 2;
    while (end < lines.length && lines[end].includes("|")) end += 1;
    const row = (line, tag) =>
      el(
        "tr",
        {},
        cells(line).map((cell, column) => el(tag, { class: alignments[column] || null }, inline(cell, 0, citation))),
      );
    const head = el("thead", {}, row(lines[at], "th"));
    const body = el(
      "tbody",
      {},
      lines.slice(at + 2, end).map((line) => row(line, "td")),
    );
    return [
      el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {}, head, body)),
      end,
    ];
  },
};

function isDelimiterRow(line) {
  return DELIMITER_ROW.test(line) && line.includes("-") && line.includes("|");
}

function cells(line) {
  const parts = [];
  let cell = "";
  const text = line.trim().replace(/^\|/, "");
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (text[at] === "|") {
      parts.push(cell.trim());
      cell = "";
    } else cell += text[at];
  }
  if (cell.trim()) parts.push(cell.trim());
  return parts;
}

function alignment(cell) {
  if (!cell.endsWith(":")) return "";
  return cell.startsWith(":") ? "center" : "right";
}

const list = {
  starts: (lines, at) => ITEM.test(lines[at]),
  read(lines, at, depth, citation) {
    const [, indent, marker] = lines[at].match(ITEM);
    const ordered = /\d/.test(marker);
    const items = [];
    let next = at;
    while (next < lines.length && continuesList(lines[next], indent.length, ordered)) {
      const [item, after] = listItem(lines, next);
      items.push(el("li", {}, tight(blocks(item, depth + 1, citation))));
      next = after;
    }
    const start = ordered ? Number.parseInt(marker, 10) : 1;
    return [el(ordered ? "ol" : "ul", { start: start === 1 ? null : start }, items), next];
  },
};

function continuesList(line, indent, ordered) {
  const match = line.match(ITEM);
  return match !== null && Math.abs(match[1].length - indent) < 2 && /\d/.test(match[2]) === ordered;
}

// The lines of one item without their indentation, and where the next block begins. A blank line ends the item unless
// what follows is indented under it.
function listItem(lines, at) {
  const [whole, indent] = lines[at].match(ITEM);
  const inner = [lines[at].slice(whole.length)];
  let next = at + 1;
  while (next < lines.length) {
    const line = lines[next];
    if (!line.trim()) {
      const follows = nextWritten(lines, next);
      if (follows === lines.length) return [inner, follows];
      if (depthOf(lines[follows]) <= indent.length) return [inner, ITEM.test(lines[follows]) ? follows : next];
      inner.push("");
      next += 1;
      continue;
    }
    if (depthOf(line) > indent.length + 1) inner.push(line.slice(Math.min(depthOf(line), whole.length)));
    else if (inner.at(-1) && !startsBlock(lines, next)) inner.push(line.trim());
    else break;
    next += 1;
  }
  return [inner, next];
}

function nextWritten(lines, at) {
  let next = at;
  while (next < lines.length && !lines[next].trim()) next += 1;
  return next;
}

const depthOf = (line) => line.length - line.trimStart().length;

function tight(children) {
  return children.flatMap((child) => (child.tagName === "P" ? [...child.childNodes] : [child]));
}

const PARAGRAPH = {
  read(lines, at, depth, citation) {
    let end = at + 1;
    while (end < lines.length && lines[end].trim() && (depth >= DEEPEST || !startsBlock(lines, end))) end += 1;
    return [el("p", {}, inline(lines.slice(at, end).join("\n").trim(), 0, citation)), end];
  },
};

const READERS = [fence, heading, rule, quote, table, list];
export const startsBlock = (lines, at) => READERS.some((reader) => reader.starts(lines, at));

const MARKS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "s"],
  ["*", "em"],
  ["_", "em"],
];

function inline(text, depth, citation) {
  const nodes = [];
  const hopeless = new Set(); // marks that nothing closes from here on
  let plain = "";
  let at = 0;
  const flush = () => {
    plain.split("\n").forEach((line, index) => nodes.push(...(index ? [el("br"), line] : [line])));
    plain = "";
  };
  while (at < text.length) {
    const found = special(text, at, depth, citation, hopeless);
    if (!found) {
      plain += text[at];
      at += 1;
      continue;
    }
    const [node, next] = found;
    if (typeof node === "string") plain += node;
    else {
      flush();
      nodes.push(node);
    }
    at = next;
  }
  flush();
  return nodes.filter((node) => node !== "");
}

function special(text, at, depth, citation, hopeless) {
  switch (text[at]) {
    case "\\":
      return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? [text[at + 1], at + 2] : null;
    case "`":
      return codeSpan(text, at);
    case "[":
      return cited(text, at, citation) ?? link(text, at, depth, citation);
    case "!":
      return text[at + 1] === "[" ? link(text, at + 1, depth, citation) : null;
    case "h":
      return address(text, at);
    case "*":
    case "_":
    case "~":
      return depth < DEEPEST ? emphasis(text, at, depth, citation, hopeless) : null;
    default:
      return null;
  }
}

function codeSpan(text, at) {
  let length = 1;
  while (text[at + length] === "`") length += 1;
  const marks = "`".repeat(length);
  let end = text.indexOf(marks, at + length);
  while (end >= 0 && text[end + length] === "`") {
    while (text[end] === "`") end += 1;
    end = text.indexOf(marks, end);
  }
  if (end < 0) return [marks, at + length];
  return [el("code", {}, text.slice(at + length, end).replace(/^ (.*\S.*) $/s, "$1")), end + length];
}

function cited(text, at, citation) {
  CITATION.lastIndex = at;
  const match = CITATION.exec(text);
  const node = match && citation(Number(match[1]));
  return node ? [node, at + match[0].length] : null;
}

function link(text, at, depth, citation) {
  let close = at + 1;
  while (close < text.length && text[close] !== "]" && text[close] !== "[" && text[close] !== "\n") close += 1;
  if (text[close] !== "]" || text[close + 1] !== "(" || close === at + 1) return null;
  let end = close + 2;
  let open = 1;
  while (end < text.length && !ENDS_ADDRESS.has(text[end])) {
    if (text[end] === "(") open += 1;
    if (text[end] === ")") open -= 1;
    if (!open) break;
    end += 1;
  }
  if (text[end] !== ")") return null;
  const node = anchor(
    text.slice(close + 2, end),
    inline(text.slice(at + 1, close), depth + 1, () => null),
  );
  return node && [node, end + 1];
}

function address(text, at) {
  if (at && WORD.test(text[at - 1])) return null;
  ADDRESS.lastIndex = at;
  const match = ADDRESS.exec(text);
  if (!match) return null;
  let href = match[0];
  while (/[.,;:!?'"*_~]/.test(href.at(-1)) || (href.endsWith(")") && !href.includes("("))) href = href.slice(0, -1);
  const node = anchor(href, [href]);
  return node && [node, at + href.length];
}

export function anchor(address, label, attributes = {}) {
  const written = /^(https?:\/\/|\/?#\/)/i.test(address);
  const target = written ? linkTarget(address) : null;
  if (!target) return null;
  const outside = target.inside ? {} : { target: "_blank", rel: "noopener noreferrer nofollow" };
  return el("a", { href: target.href, ...outside, ...attributes }, label);
}

function emphasis(text, at, depth, citation, hopeless) {
  const mark = MARKS.find(([marks]) => text.startsWith(marks, at));
  if (!mark) return null;
  const [marks, tag] = mark;
  const skip = [marks, at + marks.length];
  if (hopeless.has(marks) || !opens(text, at, marks)) return skip;
  const end = closing(text, at + marks.length, marks);
  if (end < 0) {
    hopeless.add(marks);
    return skip;
  }
  return [el(tag, {}, inline(text.slice(at + marks.length, end), depth + 1, citation)), end + marks.length];
}

function opens(text, at, marks) {
  const after = text[at + marks.length] ?? " ";
  return !/\s/.test(after) && !touches(text[at - 1], marks);
}

// Within a word, _ is never a mark and a single * only beside letters that aren't Latin: 2*3*4 and snake_case stay.
function touches(character, marks) {
  if (!character) return false;
  if (marks[0] === "_") return WORD.test(character);
  return marks === "*" && LATIN.test(character);
}

function closing(text, from, marks) {
  let end = text.indexOf(marks, from);
  while (end >= 0) {
    const doubled = marks.length === 1 && (text[end + 1] === marks || text[end - 1] === marks);
    if (!doubled && end > from && !/\s/.test(text[end - 1]) && !touches(text[end + marks.length], marks)) return end;
    end = text.indexOf(marks, end + (doubled && text[end + 1] === marks ? 2 : marks.length));
  }
  return -1;
}
