// The command palette and the list of keys.
import { ranked } from './decide.js';
import { $, base, make, modified, root, typedInto, write } from './dom.js';

const MOST = 200;
const SVG = 'http://www.w3.org/2000/svg';
const palette = $('#palette');
const help = $('#help');
const box = $('#palette-box');
const list = $('#palette-list');
let items = [];
let shown = [];
let at = 0;
let back = null;
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
    make(item.kind === 'tool' || item.kind === 'call' ? 'code' : 'span', { text: item.label }),
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
  if (!shown.length) return 'Nothing of that name.';
  if (cut > 0) return `${shown.length} shown, ${cut} more: type on to find them.`;
  return `${shown.length} ${shown.length === 1 ? 'place' : 'places'}`;
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
  if (elsewhere) {
    window.open(below(item.href), '_blank', 'noopener');
    return;
  }
  palette.close();
  location.assign(below(item.href));
};

// ---- open and close; the focus goes back to where it was
const show = (dialog) => {
  back = document.activeElement;
  dialog.showModal();
};
const open = async () => {
  if (palette.open) return;
  help.close();
  items = [];
  box.value = '';
  list.replaceChildren();
  show(palette);
  box.focus();
  say('Looking…');
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
const beside = ({ clientX: x, clientY: y }, { top, bottom, left, right }) =>
  y < top || y > bottom || x < left || x > right;

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
// First of all listeners, so that no other key of the page acts behind an open dialog.
const onKey = (event) => {
  const isCall = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (isCall && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    if (palette.open) palette.close();
    else open();
  } else if (palette.open || help.open) {
    if (!event.target.closest?.('dialog')) event.stopPropagation();
    else if (['Escape', 'n', '/'].includes(event.key)) event.stopImmediatePropagation();
  } else if (event.key === '?' && !modified(event) && !typedInto(event.target)) {
    event.preventDefault();
    show(help);
  }
};

if (palette) {
  for (const dialog of [palette, help]) {
    dialog.addEventListener('close', () => {
      if (back?.isConnected) back.focus();
      back = null;
    });
    // A click on the ground beside it: the event's target is the dialog itself only there.
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog && beside(event, dialog.getBoundingClientRect())) dialog.close();
    });
  }
  box.addEventListener('input', draw);
  box.addEventListener('keydown', onBoxKey);
  list.addEventListener('click', (event) => {
    const one = event.target.closest('[role=option]');
    if (one) go(+one.dataset.index, event.ctrlKey || event.metaKey);
  });
  $('#find')?.addEventListener('click', open);
  document.addEventListener('keydown', onKey, true);
}
