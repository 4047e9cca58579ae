// Every page: what all modules need of it, the theme, small glue, and what became of a request. Everything else is HTML
// from the server, and htmx fetches it.

import { said } from './decide.js';

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
export const typedInto = (target) => !!target.matches?.('input, textarea, select, .ask-state');

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

// ---- times: the server writes UTC into <time datetime>, or text[data-time] of a drawing, and this browser may rather
// read its own. What was written as 14:02, 14:02:07 or 14:02:07.118 is shown in the same shape; UTC stands in the tip.
// The choice stays in this browser
const isLocal = () => browser.get('parley-clock') !== 'utc';
const TIMES = 'time[datetime], text[data-time]';
const stamps = (from) => (from.matches?.(TIMES) ? [from] : $$(TIMES, from));
const tell = (time) => write(time, said(time.dateTime ?? time.dataset.time, time.textContent, isLocal()));
const tellAll = () => {
  root.dataset.clock = isLocal() ? 'local' : 'utc';
  for (const time of stamps(document.body)) tell(time);
  for (const one of $$('[data-zone]')) write(one, isLocal() ? 'local' : 'UTC');
  for (const one of $$('button[data-clock]')) {
    one.setAttribute('aria-pressed', String((one.dataset.clock === 'local') === isLocal()));
  }
};

tellAll();
root.toggleAttribute('data-told', true);
new MutationObserver((changes) => {
  for (const { target, addedNodes } of changes) {
    const time = target.nodeType === 3 ? target.parentElement : target;
    if (time?.matches(TIMES)) tell(time);
    else for (const node of addedNodes) if (node.nodeType === 1) stamps(node).forEach(tell);
  }
}).observe(document.body, { childList: true, characterData: true, subtree: true });
document.addEventListener('click', (event) => {
  const button = event.target.closest?.('button[data-clock]');
  if (!button) return;
  browser.set('parley-clock', button.dataset.clock);
  tellAll();
});
document.addEventListener('mouseover', (event) => {
  const time = event.target.closest?.('time[datetime]');
  if (time && !time.title) time.title = `${time.dateTime.replace('T', ' ').replace('Z', '')} UTC`;
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

// ---- Enter with Control sends the form in which somebody types, from every field of it, by its main button
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.altKey || event.isComposing) return;
  const { form } = event.target;
  if (form?.method !== 'post' || !typedInto(event.target)) return;
  event.preventDefault();
  form.requestSubmit($('button.go:not(:disabled, [type=button])', form));
});

// ---- a menu closes when somebody clicks beside it, and by Escape
const closeMenus = (but) => {
  for (const menu of $$('details.menu[open]')) if (!menu.contains(but)) menu.open = false;
};
document.addEventListener('click', (event) => closeMenus(event.target));
document.addEventListener('keydown', (event) => {
  const menu = event.key === 'Escape' && event.target.closest?.('details.menu[open]');
  if (!menu) return;
  menu.open = false;
  $('summary', menu).focus();
});
// What opens to be typed into is typed into at once.
document.addEventListener('click', (event) => {
  const menu = event.target.closest?.('details.menu > summary')?.parentElement;
  if (menu) requestAnimationFrame(() => menu.open && $('.menubox input:not([type=hidden])', menu)?.focus());
});

// ---- Enter in a field with a button of its own presses that one, and not the first of the form
document.addEventListener('keydown', (event) => {
  const button = event.key === 'Enter' && !event.isComposing && event.target.dataset?.enter;
  if (!button) return;
  event.preventDefault();
  $(button).click();
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
  // In a session a strip says that nobody is signed in, until that is over.
  if (speaksItself(event) || status === 422 || (status === 401 && $('#stream'))) return;
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
