// A call on its page: the form before it, what the server suggests for it, the call itself, and its result.
import { $, $$, make, modified, sentence, write } from './page.js';

// ==== the form: files into fields, a pasted object into the form, and the first wrong field in focus

// ---- htmx sends the fields of the form, but not the button inside it that has an address of its own
document.addEventListener('htmx:config:request', (event) => {
  const { sourceElement: button, request } = event.detail.ctx;
  if (button?.matches?.('button[name][hx-post]') && request.body instanceof FormData) {
    request.body.set(button.name, button.value);
  }
});

// ---- after a refusal the first wrong field has the focus, with what is wrong beside it
document.addEventListener('htmx:after:swap', (event) => {
  if (event.detail.ctx?.response?.status !== 422) return;
  const wrong =
    $('#tool-form :is(input, select, textarea)[aria-invalid=true]') ?? $('#tool-form [name=_refused] ~ * #arguments');
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

// ==== a call that this page makes comes into sight: below a long form nobody would see that something happens

const ACTS = /\/(call|get|read|compose|retry)(\/|$)/;
const RECENT = 5000;
const ROOM = 48;
let called = Number.NEGATIVE_INFINITY;

const reveal = (card) => {
  const head = $('header', card) ?? card;
  const [at, room] = [head.getBoundingClientRect(), $('#main').getBoundingClientRect()];
  const isSeen = at.top >= Math.max(0, room.top) && at.bottom + ROOM <= Math.min(innerHeight, room.bottom);
  if (!isSeen) head.scrollIntoView({ block: 'center' });
};

document.addEventListener('htmx:before:request', (event) => {
  if (ACTS.test(String(event.detail?.ctx?.request?.action).split('?')[0])) called = performance.now();
});
const calls = $('#calls');
if (calls) {
  new MutationObserver((changes) => {
    const card = changes.flatMap((change) => [...change.addedNodes]).find((node) => node.matches?.('.call'));
    if (card && performance.now() - called < RECENT) {
      called = Number.NEGATIVE_INFINITY;
      reveal(card);
    }
    while (calls.childElementCount > +(calls.dataset.cap ?? Infinity)) calls.lastElementChild.remove();
  }).observe(calls, { childList: true });
}

// ==== results: a branch of a large tree comes when it is opened, a text is shown in another way, and both can be copied

// ---- a tree: where a line stands in it, and what belongs below
const pathOf = (line) => {
  const parts = [];
  for (let at = line; at && !at.matches('.json'); at = at.parentElement) {
    if (at.dataset.k !== undefined) parts.unshift(at.dataset.k);
  }
  return parts.map((part) => `/${part}`).join('');
};
const address = (line, query) => {
  const url = new URL(line.closest('[data-tree]').dataset.tree, location.href);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.pathname + url.search;
};
const branch = (line, offset, target, swap) =>
  htmx.ajax('GET', address(line, { pointer: pathOf(line), offset }), { target, swap });
document.addEventListener(
  'toggle',
  (event) => {
    const line = event.target;
    if (!line.matches?.('.json details[data-lazy]') || !line.open) return;
    line.removeAttribute('data-lazy');
    branch(line, 0, $(':scope > div', line), 'innerHTML');
  },
  true,
);
const more = async (button) => {
  const before = button.previousElementSibling;
  button.disabled = true;
  await branch(button.closest('details'), button.dataset.more, button, 'outerHTML');
  const next = before?.nextElementSibling;
  if (next?.matches('details')) $('summary', next).focus();
};

// ---- a text as Markdown, or as a page in a frame that may do nothing: fetched when it is asked for
const frame = (src) =>
  make('iframe', {
    sandbox: '',
    referrerpolicy: 'no-referrer',
    title: 'A page from the server, without script and without loads',
    src,
  });
const markdown = async (src, place) => {
  const answer = await fetch(src, { headers: { 'HX-Request': 'true' } });
  const html = await answer.text();
  if (answer.ok) place.innerHTML = html;
  if (answer.ok) return;
  const text = sentence(html) || `Not shown: the answer was ${answer.status}.`;
  place.replaceChildren(make('p', { name: 'dim', text }));
};
const showAs = async (button) => {
  const group = button.parentElement;
  const controlled = (element) => document.getElementById(element.getAttribute('aria-controls'));
  const [text, other] = [controlled($('[data-as=text]', group)), controlled(group.lastElementChild)];
  const { src, as } = button.dataset;
  if (src && !other.childElementCount) {
    if (as === 'frame') other.append(frame(src));
    else await markdown(src, other);
  }
  text.hidden = !!src;
  other.hidden = !src;
  for (const one of group.children) one.setAttribute('aria-pressed', String(one === button));
};

// ---- copying: a result, or the path and the value of the line that was pressed last
const copy = async (button, text) => {
  button.dataset.words ??= button.textContent;
  try {
    await navigator.clipboard.writeText(await text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not copied';
  }
  setTimeout(() => {
    button.textContent = button.dataset.words;
  }, 1500);
};
const fetched = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.text();
};
let picked = null;
const pick = (line) => {
  picked?.classList.remove('jp');
  picked = line;
  $('#jbar')?.remove();
  const bar = make('span', { id: 'jbar' }, make('code', { role: 'status', text: pathOf(line) || '/' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'path', text: 'Copy path' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'value', text: 'Copy value' }));
  line.classList.add('jp');
  line.after(bar);
};

// ---- by keyboard: up and down pick a line, left and right fold it, Enter goes to its buttons, Escape back to the tree
const step = (tree, here, by) => {
  const lines = $$('.l[data-k], summary', tree).filter((line) => line.checkVisibility());
  const at = here ? lines.indexOf(here) + by : 0;
  const next = lines[Math.max(0, Math.min(lines.length - 1, at))];
  if (!next) return false;
  pick(next);
  next.scrollIntoView({ block: 'nearest' });
  return true;
};
const act = (event, tree) => {
  const here = picked && tree.contains(picked) ? picked : null;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) return step(tree, here, by);
  if (here?.matches('summary') && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
    here.parentElement.open = event.key === 'ArrowRight';
    return true;
  }
  if (event.key !== 'Enter' || !here || event.target !== tree) return false;
  $('#jbar button').focus();
  return true;
};
document.addEventListener('keydown', (event) => {
  const tree = event.target.closest?.('.json[data-tree]');
  if (!tree || modified(event)) return;
  if (!event.target.closest('#jbar')) {
    if (act(event, tree)) event.preventDefault();
  } else if (event.key === 'Escape') {
    event.stopPropagation();
    tree.focus();
  }
});
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at('.json button[data-more]')) return more(at('.json button[data-more]'));
  if (at('.as button[data-as]')) return showAs(at('.as button[data-as]'));
  const whole = at('button[data-copy]');
  if (whole) return copy(whole, fetched(whole.dataset.copy));
  const part = at('#jbar button[data-pick]');
  if (part) {
    const pointer = pathOf(picked);
    return copy(part, part.dataset.pick === 'path' ? pointer : fetched(address(picked, { pointer, value: 1 })));
  }
  const line = at('.json[data-tree] .l[data-k], .json[data-tree] summary');
  if (line && !getSelection()?.toString()) pick(line);
});
