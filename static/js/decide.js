// What the scripts decide and need no page for. tests/scripts has a test for each.

// ---- when a message of the stream goes into the page
//
// A message that comes alone goes in at once. In a burst there is one to a frame: the tab stays responsive, and what is
// unread pushes back over TCP. Two in a row are no burst when the second is small: a call and its result.

const QUIET = 40;
const SMALL = 16384;

export class Pace {
  #last = Number.NEGATIVE_INFINITY;
  #before = Number.NEGATIVE_INFINITY;

  /** A message went into the page. */
  swapped(now) {
    this.#before = this.#last;
    this.#last = now;
  }

  /** Whether a message of that many characters has to wait for the next frame. */
  waits(now, size) {
    return now - (size < SMALL ? this.#before : this.#last) <= QUIET;
  }
}

/** How long the first connect waits before it is tried again. */
export const backOff = (tries) => Math.min(15000, 500 * 2 ** tries);

// ---- which rows of the log stand in a run that is worth folding

const RUN = 6;

/** Where at least six equal names stand in a row, as pairs of begin and end. Rows without a name end a run. */
export const runs = (names) => {
  const found = [];
  for (let begin = 0, end = 0; begin < names.length; begin = end) {
    while (end < names.length && names[end] === names[begin]) end++;
    if (names[begin] && end - begin >= RUN) found.push([begin, end]);
  }
  return found;
};

// ---- which places of the palette match what was typed, and which of them stands first

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

// ---- how a stretch of time is written while it runs

const two = (n) => String(n).padStart(2, '0');

/** Whole seconds as 0:05, 12:40 or 1:00:00. */
export const clock = (seconds) => {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  return hours ? `${hours}:${two(minutes % 60)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
};
/** Seconds until a moment, never less than none; a bar moves by parts of them. */
export const left = (moment, now) => Math.max(0, (Date.parse(moment) - now) / 1000);
/** Whole seconds since a moment. */
export const since = (moment, now) => Math.max(0, Math.floor((now - Date.parse(moment)) / 1000));
/** From here on a count-down is shown as urgent. */
export const SOON = 20;
