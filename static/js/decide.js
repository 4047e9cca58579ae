// What the scripts decide and need no page for. tests/scripts has a test for each.

// ---- when a message of the stream goes into the page
//
// A message that comes alone goes in at once. In a burst there is one to a frame: the tab stays responsive, and what is
// unread pushes back over TCP. Two in a row are no burst when the second is small: a call and its result. Four are none
// when the last is tiny: a word of a draft, a figure, which cost less than the frame they would wait for.

const QUIET = 40;
const SMALL = 16384;
const TINY = 1024;

export class Pace {
  #times = Array(4).fill(Number.NEGATIVE_INFINITY);

  /** A message went into the page. */
  swapped(now) {
    this.#times = [now, ...this.#times.slice(0, 3)];
  }

  /** Whether a message of that many characters has to wait for the next frame. */
  waits(now, size) {
    return now - this.#times[size < TINY ? 3 : size < SMALL ? 1 : 0] <= QUIET;
  }
}

/** How long the first connect waits before it is tried again. */
export const backOff = (tries) => Math.min(15000, 500 * 2 ** tries);

// ---- what repeats in the log: how many rows are one line, what it says, how long it took. As app/web/log/row.py

export const RUN = 6;
const LONGEST = Math.log(60000);

/** Milliseconds as <1 ms, 22 ms, 14.4 s, 3 min 5 s. */
export const took = (ms) => {
  if (ms < 1) return '<1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 90000) return `${(ms / 1000).toFixed(1).replace('.0', '')} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 90 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};
/** How wide the bar of a duration is, in percent: logarithmic, from 1 ms to a minute. */
export const bar = (ms) => Math.min(100, Math.max(2, Math.round((100 * Math.log(Math.max(ms, 1))) / LONGEST)));

/** What a line of many messages says: progress from where to where, or how often something was asked. */
export const foldWords = ({ key, from, to, asked, ms }) => {
  if (from) return `${from.split(' of ')[0]} to ${to}`;
  if (!asked) return '';
  const of = key.split(' ').slice(1).join(' ');
  const words = of ? `${asked} polls of ${of}` : `${asked} times`;
  return asked > 1 ? `${words}, every ${took(ms / (asked - 1))}` : words;
};

// ---- a moment in the time of this machine, in the shape in which the server wrote it in UTC

const SHAPES = { 5: 0, 8: 1, 12: 2 };
const pad = (n, many = 2) => String(n).padStart(many, '0');

/** `14:02:07.118`, `14:02:07` or `14:02`, as long as the text was; the text itself where it is none of them. */
export const said = (iso, text, isLocal) => {
  const at = new Date(iso);
  if (!(text.length in SHAPES) || Number.isNaN(+at)) return text;
  const [h, m, s] = isLocal
    ? [at.getHours(), at.getMinutes(), at.getSeconds()]
    : [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()];
  return `${pad(h)}:${pad(m)}:${pad(s)}.${pad(at.getUTCMilliseconds(), 3)}`.slice(0, text.length);
};

// ---- which places of the palette match what was typed, and which of them stands first

/** A name that begins with the words, then one that has them, then the rest; messages after all others of their rank.
 * Without words asks come first, then pages, then acts. */
const score = ({ label, detail, kind }, words) => {
  const name = label.toLowerCase();
  const all = `${name} ${detail.toLowerCase()} ${kind}`;
  if (!words.length) return { ask: 4, page: 3, act: 2 }[kind] ?? 1;
  if (!words.every((word) => all.includes(word))) return 0;
  const less = kind === 'message' ? 0.5 : 0;
  if (name.startsWith(words[0])) return 3 - less;
  return (words.every((word) => name.includes(word)) ? 2 : 1) - less;
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

// ---- from one difference to the next

/** The place one step on, round and round; before the first step (-1) both directions begin at an end. */
export const stepped = (at, step, count) => {
  if (at < 0) return step > 0 ? 0 : count - 1;
  return (at + step + count) % count;
};
