// What every module needs of the page: finding, making and writing elements, and keeping a word in this browser.

export const root = document.documentElement;
export const $ = (selector, from = document) => from.querySelector(selector);
export const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

/** The address of this session, or nothing where the page shows none. */
export const base = () => $('#stream')?.dataset.base ?? '';

/** An element with a class, a text and attributes. Texts of a server are set as text, never as markup. */
export const make = (tag, { name = '', text = '', ...attributes } = {}, ...children) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

/** Writes a text only when it is another one: each writing costs layout, and a screen reader may say it again. */
export const write = (element, text) => {
  if (element && element.textContent !== text) element.textContent = text;
};

/** Whether a key comes with one of those that give it another meaning. Not Shift: some keyboards need it for a slash. */
export const modified = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** Whether somebody types there, so that a letter is no command. */
export const typedInto = (target) => !!target.matches?.('input, textarea, select');

// A browser may refuse storage altogether. What cannot be kept is not kept, and nothing else fails by that.
const keeper = (which) => ({
  get(key) {
    try {
      return window[which].getItem(key);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      window[which].setItem(key, value);
    } catch {}
  },
  remove(key) {
    try {
      window[which].removeItem(key);
    } catch {}
  },
  keys() {
    try {
      return Object.keys(window[which]);
    } catch {
      return [];
    }
  },
});
/** Kept in this browser. */
export const browser = keeper('localStorage');
/** Kept in this tab. */
export const tab = keeper('sessionStorage');
