// Suggestions of the server while an argument is typed: a listbox below the field, by pointer or by keyboard.
import { $, $$, make, write } from './dom.js';

const PAUSE = 150;
const REMEMBERED = 200;
const known = new Map();
let timer = 0;
let asked = null;

const listOf = (input) => document.getElementById(input.getAttribute('aria-controls'));
const options = (input) => $$('[role=option]', listOf(input));
const say = (input, words) => write($('[data-suggestions]', input.form), words);

const close = (input) => {
  const list = listOf(input);
  list.hidden = true;
  list.replaceChildren();
  input.setAttribute('aria-expanded', 'false');
  input.removeAttribute('aria-activedescendant');
};
const mark = (input, index) => {
  const all = options(input);
  if (!all.length) return;
  const at = (index + all.length) % all.length;
  for (const [place, option] of all.entries()) option.setAttribute('aria-selected', String(place === at));
  input.setAttribute('aria-activedescendant', all[at].id);
  all[at].scrollIntoView({ block: 'nearest' });
};
const marked = (input) => options(input).findIndex((option) => option.getAttribute('aria-selected') === 'true');
const pick = (input, option) => {
  input.value = option.textContent;
  close(input);
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
const show = (input, found) => {
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
const ask = async (input) => {
  const { form } = input;
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (name.startsWith('arg.')) body.set(name, value);
  body.set('_ref', form.dataset.ref);
  body.set('_of', form.dataset.of);
  body.set('_argument', input.dataset.argument);
  const key = body.toString();
  if (known.has(key)) return show(input, known.get(key));
  asked?.abort();
  asked = new AbortController();
  try {
    const headers = { accept: 'application/json' };
    const answer = await fetch(form.dataset.complete, { method: 'POST', body, headers, signal: asked.signal });
    if (!answer.ok) return close(input);
    const found = await answer.json();
    if (known.size > REMEMBERED) known.clear();
    if (!found.error) known.set(key, found);
    if (document.activeElement === input) show(input, found);
  } catch {
    // another key was pressed, or Parley is away
  }
};
const soon = (input, pause) => {
  clearTimeout(timer);
  timer = setTimeout(() => ask(input), pause);
};
const combo = (event) => event.target.closest?.('input[role=combobox][data-argument]');

document.addEventListener('input', (event) => {
  const input = combo(event);
  if (!input) return;
  if (input.dataset.picked === input.value) delete input.dataset.picked;
  else soon(input, PAUSE);
});
document.addEventListener('focusin', (event) => {
  const input = combo(event);
  if (input && !input.value) soon(input, PAUSE);
});
document.addEventListener('focusout', (event) => {
  const input = combo(event);
  if (!input) return;
  clearTimeout(timer);
  close(input);
});
document.addEventListener('keydown', (event) => {
  const input = combo(event);
  if (!input || event.isComposing) return;
  const isOpen = input.getAttribute('aria-expanded') === 'true';
  const at = marked(input);
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    if (!isOpen) soon(input, 0);
    else if (event.key === 'ArrowDown') mark(input, at + 1);
    else mark(input, at < 0 ? -1 : at - 1);
  } else if (isOpen && event.key === 'Enter' && at >= 0) {
    event.preventDefault();
    pick(input, options(input)[at]);
  } else if (isOpen && event.key === 'Escape') {
    event.preventDefault();
    close(input);
  }
});
// Pressing must not take the focus away, or the list would close before it is chosen from.
document.addEventListener('pointerdown', (event) => {
  const option = event.target.closest?.('.suggest [role=option]');
  if (!option) return;
  event.preventDefault();
  pick($(`[aria-controls="${option.parentElement.id}"]`), option);
});
