// What was changed in a text, while somebody types: from the first word that differs to the last. No page is needed for
// that; tests/scripts has its test.

const parts = (text) => text.match(/\s+|\S+/g) ?? [];
const shared = (one, two) => {
  let many = 0;
  while (many < Math.min(one.length, two.length) && one[many] === two[many]) many++;
  return many;
};

/** Both texts in one: `['', text]` for what they share, `['del', text]` for what is gone, `['ins', text]` for what came. */
export const edits = (before, after) => {
  const [old, now] = [parts(before), parts(after)];
  const start = shared(old, now);
  const end = shared(old.slice(start).reverse(), now.slice(start).reverse());
  return [
    ['', old.slice(0, start).join('')],
    ['del', old.slice(start, old.length - end).join('')],
    ['ins', now.slice(start, now.length - end).join('')],
    ['', old.slice(old.length - end).join('')],
  ].filter(([, text]) => text);
};

/** How long a text is, for people. */
export const words = (text) => {
  const many = parts(text).filter((part) => part.trim()).length;
  return `${many} word${many === 1 ? '' : 's'}`;
};
