// Finds a quote in rendered text and marks it. Compared by letters and digits alone: line breaks, list marks and
// emphasis may stand between them.

const WRITTEN = /[\p{L}\p{N}]/u;
const TRAILING = /^[.,;:!?)\]}”"»’'%。，；：！？）」』]+/;

const fold = (text) =>
  [...text.normalize("NFKD")]
    .filter((character) => WRITTEN.test(character))
    .join("")
    .toLowerCase();

// Marks the first place of the quote below `root`; returns the first <mark>, or null where the quote isn't found.
export function markQuote(root, quote) {
  const wanted = fold(quote);
  if (!wanted) return null;
  const { letters, origins } = lettersOf(root);
  const start = letters.indexOf(wanted);
  if (start < 0) return null;
  return wrap(origins[start], origins[start + wanted.length - 1]);
}

function lettersOf(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const pieces = [];
  const origins = []; // for each code unit of the letters: its node, and its span there
  while (walker.nextNode()) {
    const node = walker.currentNode;
    let offset = 0;
    for (const character of node.data) {
      const folded = fold(character);
      pieces.push(folded);
      for (let unit = 0; unit < folded.length; unit += 1) origins.push([node, offset, offset + character.length]);
      offset += character.length;
    }
  }
  return { letters: pieces.join(""), origins };
}

function wrap([first, start], [last, , end]) {
  const common = document.createRange();
  common.setStart(first, start);
  common.setEnd(last, end + (TRAILING.exec(last.data.slice(end))?.[0].length ?? 0));
  const walker = document.createTreeWalker(common.commonAncestorContainer, NodeFilter.SHOW_TEXT);
  const nodes = [];
  if (common.commonAncestorContainer.nodeType === Node.TEXT_NODE) nodes.push(common.commonAncestorContainer);
  else while (walker.nextNode()) if (common.intersectsNode(walker.currentNode)) nodes.push(walker.currentNode);
  const finish = common.endOffset;
  const marks = [];
  for (const node of nodes) {
    const from = node === first ? start : 0;
    const to = node === last ? finish : node.length;
    if (!node.data.slice(from, to).trim()) continue;
    const piece = document.createRange();
    piece.setStart(node, from);
    piece.setEnd(node, to);
    const mark = document.createElement("mark");
    piece.surroundContents(mark);
    marks.push(mark);
  }
  return marks[0] ?? null;
}
