// Every page: glue only. Everything else is HTML from the server, and htmx fetches it.
import './refusals.js';
import './focus.js';
import { $, $$, browser, root } from './dom.js';

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

// ---- a form that goes to another page goes once, however often its button is pressed until that page is there
const ONCE = 3000;
const gone = new WeakMap();
document.addEventListener('submit', (event) => {
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
