// What the palette finds, and what becomes of a choice. session.js opens and closes it.
import { ranked } from './decide.js';
import { $, base, make, root, tab, write } from './page.js';

const MOST = 200;
const SVG = 'http://www.w3.org/2000/svg';
const JUMPED = 'parley-jumped';
const palette = $('#palette');
const box = $('#palette-box');
const list = $('#palette-list');
let items = [];
let shown = [];
let at = 0;
let loads = 0;

// JSON has the addresses that scripts use; this page lives below a path of its own.
const below = (href) => root.dataset.root + href.slice(1);
const say = (words) => write($('#palette-say'), words);

const icon = (name) => {
  const [svg, use] = [document.createElementNS(SVG, 'svg'), document.createElementNS(SVG, 'use')];
  svg.setAttribute('class', 'i');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${palette.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
};
const option = (item, index) =>
  make(
    'div',
    { id: `palette-${index}`, role: 'option', 'aria-selected': 'false', 'data-index': index },
    icon(item.icon),
    make(['tool', 'call', 'message'].includes(item.kind) ? 'code' : 'span', { text: item.label }),
    make('span', { name: 'dim s', text: item.detail }),
    make('span', { name: 'k', text: item.kind }),
  );
const mark = (index) => {
  if (!shown.length) return box.removeAttribute('aria-activedescendant');
  at = (index + shown.length) % shown.length;
  for (const one of list.children) one.setAttribute('aria-selected', String(+one.dataset.index === at));
  const current = $(`#palette-${at}`);
  box.setAttribute('aria-activedescendant', current.id);
  current.scrollIntoView({ block: 'nearest' });
};
const counted = (cut) => {
  if (!shown.length) return 'No results.';
  if (cut > 0) return `${shown.length} shown, ${cut} more: type on to find them.`;
  return `${shown.length} ${shown.length === 1 ? 'result' : 'results'}`;
};
const draw = () => {
  const matching = ranked(items, box.value);
  shown = matching.slice(0, MOST);
  list.replaceChildren(...shown.map(option));
  say(counted(matching.length - shown.length));
  mark(0);
};
const go = (index, elsewhere) => {
  const item = shown[index];
  if (!item) return;
  if (item.press || item.post) {
    palette.close();
    act(item);
    return;
  }
  if (elsewhere) {
    window.open(below(item.href), '_blank', 'noopener');
    return;
  }
  palette.close();
  tab.set(JUMPED, '1');
  location.assign(below(item.href));
};
// An act presses a button of this page, or posts as a form of it would: the answer is the next page.
const act = ({ press, post, href }) => {
  if (press) return $(press)?.click();
  const form = make('form', { method: 'post', action: below(href) });
  for (const [key, value] of Object.entries(post)) {
    const field = make('input', { type: 'hidden', value });
    field.name = key;
    form.append(field);
  }
  document.body.append(form);
  form.requestSubmit();
};
/** Ask what there is to find; what was typed meanwhile is looked for at once. */
export const look = async () => {
  items = [];
  const mine = ++loads;
  try {
    const answer = await fetch(`${base()}/palette`, { headers: { accept: 'application/json' } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = (await answer.json()).items;
    if (mine !== loads) return;
    items = found;
    draw();
  } catch {
    if (mine === loads) say('Parley could not be reached.');
  }
};

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
const onBoxKey = (event) => {
  const step = STEPS[event.key];
  if (step) {
    event.preventDefault();
    mark(Math.abs(step) === 1 ? at + step : Math.max(0, Math.min(shown.length - 1, at + step)));
  }
  if (event.key === 'Enter' && !event.isComposing) {
    event.preventDefault();
    go(at, event.ctrlKey || event.metaKey);
  }
};
box.addEventListener('input', draw);
box.addEventListener('keydown', onBoxKey);
list.addEventListener('click', (event) => {
  const one = event.target.closest('[role=option]');
  if (one) go(+one.dataset.index, event.ctrlKey || event.metaKey);
});
