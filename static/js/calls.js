// A page on which something is called: the form before a call, and what the server suggests for it. It brings along what
// such a page has besides.
import './asks.js';
import './bench.js';
import './results.js';
import { $, $$, make, write } from './page.js';

// ==== the form: files into fields, a pasted object into the form, and the first wrong field in focus

// ---- after a refusal the first wrong field has the focus, with what is wrong beside it
document.addEventListener('htmx:after:swap', (event) => {
  if (event.detail.ctx?.response?.status !== 422) return;
  const wrong =
    $('#fill-in') ??
    $('#tool-form :is(:is(input, select, textarea)[aria-invalid=true], [aria-invalid=true] input)') ??
    $('#tool-form [name=_refused] ~ * #arguments');
  for (let at = wrong; at; at = at.parentElement) if (at.matches('details')) at.open = true;
  wrong?.focus();
});

// ---- a file becomes base64 text in the field beside it
document.addEventListener('change', (event) => {
  const input = event.target;
  if (!input.matches?.('input[type=file][data-base64-for]')) return;
  const [field, file] = [document.getElementById(input.dataset.base64For), input.files[0]];
  if (!field || !file) return;
  const reader = new FileReader();
  reader.onload = () => {
    field.value = String(reader.result).replace(/^[^,]*,/, '');
    field.dispatchEvent(new Event('input', { bubbles: true }));
  };
  reader.readAsDataURL(file);
});

// ---- an object pasted beside the fields fills the form
const isObject = (text) => {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value);
  } catch {
    return false;
  }
};
document.addEventListener('paste', (event) => {
  const form = $('#tool-form');
  if (!form || event.target.closest?.('input, textarea, select, [contenteditable]')) return;
  const text = event.clipboardData?.getData('text/plain') || '';
  if (!isObject(text)) return;
  event.preventDefault();
  const values = { _mode: 'json', _to: 'form', _text: text };
  htmx.ajax('POST', form.dataset.form, { source: '#fetches', target: form, swap: 'outerHTML', values });
});

// ---- where the JSON of the arguments cannot be read, a button leads to the place
document.addEventListener('click', (event) => {
  const place = event.target.closest?.('button[data-line]')?.dataset;
  const box = $('#arguments');
  if (!place || !box) return;
  const above = box.value.split('\n').slice(0, +place.line - 1);
  const from = above.reduce((sum, line) => sum + line.length + 1, 0) + +place.column - 1;
  box.focus();
  box.setSelectionRange(from, Math.min(from + 1, box.value.length));
});

// ==== suggestions of the server while an argument is typed: a listbox below the field, by pointer or by keyboard

const PAUSE = 150;
const REMEMBERED = 200;
const answers = new Map();
let timer = 0;
let asking = null;

const listOf = (input) => document.getElementById(input.getAttribute('aria-controls'));
const options = (input) => $$('[role=option]', listOf(input));
const say = (input, words) => write($('[data-suggestions]', input.form), words);

const closeList = (input) => {
  const list = listOf(input);
  list.hidden = true;
  list.replaceChildren();
  input.setAttribute('aria-expanded', 'false');
  input.removeAttribute('aria-activedescendant');
};
const markOption = (input, index) => {
  const all = options(input);
  if (!all.length) return;
  const at = (index + all.length) % all.length;
  for (const [place, option] of all.entries()) option.setAttribute('aria-selected', String(place === at));
  input.setAttribute('aria-activedescendant', all[at].id);
  all[at].scrollIntoView({ block: 'nearest' });
};
const marked = (input) => options(input).findIndex((option) => option.getAttribute('aria-selected') === 'true');
const take = (input, option) => {
  input.value = option.textContent;
  closeList(input);
  say(input, '');
  // The form hears of it like of anything typed; the list stays closed.
  input.dataset.picked = input.value;
  input.dispatchEvent(new Event('input', { bubbles: true }));
};
const elsewhere = ({ values, hasMore, total }) => {
  if (!hasMore) return '';
  const most = 'more on the server: type on';
  return total > values.length ? `${total - values.length} ${most}` : most;
};
const counted = ({ values, error }, more) => {
  if (!values.length) return error ? `No suggestions: ${error}` : 'No suggestions';
  return `${values.length} ${values.length === 1 ? 'suggestion' : 'suggestions'}${more && `, ${more}`}`;
};
const showFound = (input, found) => {
  const list = listOf(input);
  const more = elsewhere(found);
  list.replaceChildren(
    ...found.values.map((text, index) =>
      make('li', { id: `${list.id}-${index}`, role: 'option', 'aria-selected': 'false', text }),
    ),
  );
  list.dataset.more = more;
  list.hidden = !found.values.length;
  input.setAttribute('aria-expanded', String(!list.hidden));
  input.removeAttribute('aria-activedescendant');
  say(input, counted(found, more));
};
const askFor = async (input) => {
  const { form } = input;
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (name.startsWith('arg.')) body.set(name, value);
  body.set('_ref', form.dataset.ref);
  body.set('_of', form.dataset.of);
  body.set('_argument', input.dataset.argument);
  const key = body.toString();
  if (answers.has(key)) return showFound(input, answers.get(key));
  asking?.abort();
  asking = new AbortController();
  try {
    const headers = { accept: 'application/json' };
    const answer = await fetch(form.dataset.complete, { method: 'POST', body, headers, signal: asking.signal });
    if (!answer.ok) return closeList(input);
    const found = await answer.json();
    if (answers.size > REMEMBERED) answers.clear();
    if (!found.error) answers.set(key, found);
    if (document.activeElement === input) showFound(input, found);
  } catch {
    // another key was pressed, or Parley is away
  }
};
const askSoon = (input, pause) => {
  clearTimeout(timer);
  timer = setTimeout(() => askFor(input), pause);
};
const combo = (event) => event.target.closest?.('input[role=combobox][data-argument]');

document.addEventListener('input', (event) => {
  const input = combo(event);
  if (!input) return;
  if (input.dataset.picked === input.value) delete input.dataset.picked;
  else askSoon(input, PAUSE);
});
document.addEventListener('focusin', (event) => {
  const input = combo(event);
  if (input && !input.value) askSoon(input, PAUSE);
});
document.addEventListener('focusout', (event) => {
  const input = combo(event);
  if (!input) return;
  clearTimeout(timer);
  closeList(input);
});
document.addEventListener('keydown', (event) => {
  const input = combo(event);
  if (!input || event.isComposing) return;
  const isOpen = input.getAttribute('aria-expanded') === 'true';
  const at = marked(input);
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    if (!isOpen) askSoon(input, 0);
    else if (event.key === 'ArrowDown') markOption(input, at + 1);
    else markOption(input, at < 0 ? -1 : at - 1);
  } else if (isOpen && event.key === 'Enter' && at >= 0) {
    event.preventDefault();
    take(input, options(input)[at]);
  } else if (isOpen && event.key === 'Escape') {
    event.preventDefault();
    closeList(input);
  }
});
// Pressing must not take the focus away, or the list would close before it is chosen from.
document.addEventListener('pointerdown', (event) => {
  const option = event.target.closest?.('.suggest [role=option]');
  if (!option) return;
  event.preventDefault();
  take($(`[aria-controls="${option.parentElement.id}"]`), option);
});
