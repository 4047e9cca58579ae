// Every page: what all modules need of it, the theme, small glue, and what became of a request. Everything else is HTML
// from the server, and htmx fetches it.

// ==== finding, making and writing elements, and keeping a word in this browser

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

// ==== what every page does

// ---- the theme: system, light, dark. The choice stays in this browser; static/theme.js applies it before the first paint
const THEMES = { system: 'follows the system', light: 'light', dark: 'dark' };
const NEXT = { system: 'light', light: 'dark', dark: 'system' };

const setTheme = (theme) => {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  browser.set('parley-theme', theme);
  const button = $('#theme');
  if (!button) return;
  button.title = `Theme: ${THEMES[theme]}`;
  button.setAttribute('aria-label', button.title);
};
const theme = () => root.dataset.theme || 'system';

setTheme(theme());
document.addEventListener('click', (event) => {
  if (event.target.closest?.('#theme')) setTheme(NEXT[theme()]);
});

// ---- a list that is whole in the page is filtered here
document.addEventListener('input', (event) => {
  const { filter } = event.target.dataset ?? {};
  if (!filter) return;
  const words = event.target.value.trim().toLowerCase().split(/\s+/);
  for (const item of $(filter)?.children ?? []) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
});

// ---- one more row of a list of fields
document.addEventListener('click', (event) => {
  const add = event.target.closest?.('[data-add]');
  if (!add) return;
  const list = $('[data-rows]', add.closest('fieldset, form'));
  const row = list.lastElementChild.cloneNode(true);
  for (const input of $$('input', row)) input.value = '';
  list.append(row);
  htmx.process(row);
  row.dispatchEvent(new CustomEvent('parley:row', { bubbles: true }));
  $('input', row).focus();
});

// ---- a form that goes to another page goes once, however often its button is pressed until that page is there. Last of
// all listeners, on the window: what another one has stopped has not gone
const ONCE = 3000;
const gone = new WeakMap();
addEventListener('submit', (event) => {
  const form = event.target;
  if (form.method !== 'post' || form.hasAttribute('hx-post') || event.defaultPrevented) return;
  if (performance.now() - (gone.get(form) ?? -Infinity) < ONCE) event.preventDefault();
  else gone.set(form, performance.now());
});
addEventListener('pageshow', (event) => {
  if (event.persisted) for (const form of document.forms) gone.delete(form);
});

// ---- a text of several lines is sent by Enter with Control
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !event.target.matches?.('textarea')) return;
  event.preventDefault();
  event.target.form?.requestSubmit();
});

// ==== what was refused and is visible nowhere else is said for a few seconds in a corner

/** The sentence in a page or part that says what went wrong. */
export const sentence = (html) =>
  new DOMParser().parseFromString(html || '', 'text/html').querySelector('[data-message]')?.dataset.message;

const toast = (text) => $('#toasts').append(make('div', { name: 'toast', text }));
// The stream has its pill, and a tab that only counts tries again.
const speaksItself = (event) => !!event.target?.matches?.('#stream, [data-count]');

document.addEventListener('htmx:response:error', (event) => {
  const { ctx } = event.detail;
  const status = ctx?.response?.status;
  if (speaksItself(event) || status === 422) return;
  const otherwise = status === 401 ? 'Not sent: you are signed out.' : `Not sent: the answer was ${status}.`;
  toast(sentence(ctx?.text) || otherwise);
});
document.addEventListener('htmx:error', (event) => {
  if (!speaksItself(event)) toast('Not sent: Parley could not be reached.');
});
document.addEventListener('htmx:before:request', () => $('#form-error')?.replaceChildren());
document.addEventListener('animationend', (event) => {
  if (event.animationName === 'go') event.target.remove();
});

// ==== a button is disabled while its request is under way, and a form may come back anew: a keyboard must not lose its
// place by that

const LASTS = 5000;
let place = null;

const remember = (event) => {
  const element = document.activeElement;
  if (!element || element === document.body || !event.target.contains?.(element)) return;
  place = { element, id: element.id, card: element.closest('.ask')?.id, until: performance.now() + LASTS };
};
const giveBack = () =>
  setTimeout(() => {
    if (!place || performance.now() > place.until || document.activeElement !== document.body) return;
    const { element, id, card } = place;
    const twin = element.isConnected ? element : id && document.getElementById(id);
    const usable = twin && !twin.matches(':disabled') && twin.checkVisibility();
    const next = usable ? twin : card && $(`#${CSS.escape(card)} summary`);
    if (!next) return;
    // A card may be drawn anew once more, when its answer has left.
    place.element = next;
    next.focus({ preventScroll: true });
  });

document.addEventListener('submit', remember, true);
document.addEventListener('click', remember, true);
document.addEventListener('htmx:after:swap', giveBack);
document.addEventListener('htmx:finally:request', giveBack);
const forget = () => {
  place = null;
};
document.addEventListener('pointerdown', forget, true);
document.addEventListener('focusin', (event) => {
  if (event.target !== place?.element) forget();
});
