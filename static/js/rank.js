// Which places of the palette match what was typed, and which of them stands first.

/** A name that begins with the words, then one that has them, then the rest; without words asks and pages first. */
const score = ({ label, detail, kind }, words) => {
  const name = label.toLowerCase();
  const all = `${name} ${detail.toLowerCase()} ${kind}`;
  if (!words.length) return { ask: 3, page: 2 }[kind] ?? 1;
  if (!words.every((word) => all.includes(word))) return 0;
  if (name.startsWith(words[0])) return 3;
  return words.every((word) => name.includes(word)) ? 2 : 1;
};

/** The items that match, the best ones first; equal ones stay in their order. */
export const ranked = (items, text) => {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const scored = items.map((item) => [score(item, words), item]).filter(([points]) => points);
  return scored.sort(([a], [b]) => b - a).map(([, item]) => item);
};
