// What a call brought: as a table, a tree or a text, searched, folded, and copied from. All of it is drawn by the server;
// here it is asked for in another way, and remembered which one somebody likes.
import { $, $$, browser, make, modified, sentence } from './page.js';

// ==== where a line or a cell stands

const HOLDS = '.json, .tbl';
const pathOf = (line) => {
  if (line.matches('td')) {
    const table = line.closest('.tbl');
    const column = $$('thead th', table)[line.cellIndex];
    return `${table.dataset.at}/${line.parentElement.dataset.k}/${column.dataset.k}`;
  }
  const parts = [];
  for (let at = line; at && !at.matches('.json'); at = at.parentElement) {
    if (at.dataset.k !== undefined) parts.unshift(at.dataset.k);
  }
  return parts.map((part) => `/${part}`).join('');
};
const source = (line) => line.closest('[data-tree]').dataset.tree;
const address = (from, query, verb = 'branch') => {
  const url = new URL(from, location.href);
  url.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1) + verb;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.pathname + url.search;
};
const rootOf = (element) => new URL(element.dataset.tree, location.href).searchParams.get('root') ?? '';
const fetched = async (url) => {
  const answer = await fetch(url, { headers: { 'HX-Request': 'true' } });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.text();
};

// ==== a tree: branches come when they are opened

const branch = (line, query, target, swap) =>
  htmx.ajax('GET', address(source(line), { pointer: pathOf(line), ...query }), { target, swap });
const load = (line) => {
  line.removeAttribute('data-lazy');
  return branch(line, { offset: 0 }, $(':scope > div', line), 'innerHTML');
};
document.addEventListener(
  'toggle',
  (event) => {
    const line = event.target;
    if (line.matches?.('.json details[data-lazy]') && line.open) load(line);
  },
  true,
);
const gap = ({ dataset }) => ({ offset: dataset.more, ...(dataset.until && { until: dataset.until }) });
const more = async (button) => {
  const before = button.previousElementSibling;
  button.disabled = true;
  await branch(button.closest('details'), gap(button), button, 'outerHTML');
  const next = before?.nextElementSibling;
  if (next) pick(next.matches('details') ? $('summary', next) : next);
};
const foldAll = (button) => {
  const open = button.dataset.fold === 'open';
  const tree = $(':scope > .json', button.closest('.block')) ?? $('.json', button.closest('.block'));
  // What is not loaded yet stays shut: opening it would fetch thousands of branches.
  for (const one of $$('details:not([data-lazy])', tree)) one.open = open || one.parentElement === tree;
};

// ==== a table: another order, more rows, more columns

const ordered = (table) => {
  const head = $('th[aria-sort]', table);
  if (!head) return {};
  return { sort: head.dataset.k, ...(head.ariaSort === 'descending' && { down: 1 }) };
};
const tableAddress = (table, query) =>
  address(table.dataset.tree, { id: table.id, ...('wide' in table.dataset && { wide: 1 }), ...query }, 'table');
const redraw = async (table, query, focus) => {
  const id = table.id;
  await htmx.ajax('GET', tableAddress(table, query), { target: table, swap: 'outerHTML' });
  (focus ? document.getElementById(focus) : document.getElementById(id))?.focus({ preventScroll: true });
};
// The first press sorts upwards, the second downwards, the third as it came.
const sort = (button) => {
  const head = button.closest('th');
  const next = { ascending: { sort: head.dataset.k, down: 1 }, descending: {} }[head.ariaSort] ?? {
    sort: head.dataset.k,
  };
  redraw(head.closest('.tbl'), next, button.id);
};
const rows = async (button) => {
  const table = button.closest('.tbl');
  button.disabled = true;
  const html = await fetched(tableAddress(table, { ...ordered(table), offset: button.dataset.rows }));
  const fresh = new DOMParser().parseFromString(html, 'text/html');
  const before = $('tbody', table).lastElementChild;
  $('tbody', table).append(...$('tbody', fresh).rows);
  const foot = $('tfoot', fresh);
  if (foot) $('tfoot', table).replaceWith(foot);
  else $('tfoot', table).remove();
  pick(before.nextElementSibling.cells[1]);
  table.focus({ preventScroll: true });
};

// ==== in which way it is shown: a choice for each tool, kept in this browser

const CHOICES = 'parley-views';
const MOST = 200;
const choices = () => {
  try {
    return Object.entries(JSON.parse(browser.get(CHOICES) ?? '{}'));
  } catch {
    return [];
  }
};
const choice = (of, what) => choices().find(([key]) => key === `${what} ${of}`)?.[1];
const choose = (of, what, value) => {
  const kept = choices().filter(([key]) => key !== `${what} ${of}`);
  browser.set(CHOICES, JSON.stringify(Object.fromEntries([...kept.slice(1 - MOST), [`${what} ${of}`, value]])));
};

// One after the other: what comes takes the place of the result that was there when it was asked for.
const views = new WeakMap();
const view = (button) => {
  const card = button.closest('.call');
  for (const one of button.parentElement.children) one.setAttribute('aria-pressed', String(one === button));
  const shown = (views.get(card) ?? Promise.resolve()).then(() =>
    htmx.ajax('GET', button.dataset.src, { target: $('.result', card), swap: 'outerHTML' }),
  );
  views.set(
    card,
    shown.catch(() => null),
  );
  return shown;
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

// ---- a result that arrives is shown as it was chosen before; Markdown that says so opens laid out
const known = new WeakSet();
const arrange = () => {
  for (const group of $$('.call[data-of] .views .seg')) {
    if (known.has(group)) continue;
    known.add(group);
    const wanted = choice(group.closest('.call').dataset.of, 'view');
    const button = wanted && $(`[data-view=${CSS.escape(wanted)}][aria-pressed=false]`, group);
    if (button) view(button);
  }
  for (const group of $$('.as:has([data-as=markdown])')) {
    if (known.has(group)) continue;
    known.add(group);
    const of = group.closest('.call')?.dataset.of ?? '';
    const wanted = choice(of, 'text') ?? ('rendered' in group.dataset ? 'markdown' : 'text');
    if (wanted === 'markdown') showAs($('[data-as=markdown]', group));
  }
};
const main = $('#main');
if (main && $('#calls, .call', main)) {
  arrange();
  new MutationObserver(arrange).observe(main, { childList: true, subtree: true });
}

// ==== a place in a result is shown where it stands: its ancestors open, and it comes into sight, marked

const child = (line, part) => $$(':scope > div > [data-k]', line).find((one) => one.dataset.k === part);
const walk = async (tree, pointer) => {
  let at = $(':scope > details', tree);
  for (const part of pointer.split('/').slice(1)) {
    if (!at?.matches('details')) break;
    at.open = true;
    if (at.hasAttribute('data-lazy')) await load(at);
    let next = child(at, part);
    for (const button of next ? [] : $$(':scope > div > [data-more]', at)) {
      await branch(at, { ...gap(button), around: part }, button, 'outerHTML').catch(() => null);
      next = child(at, part);
      if (next) break;
    }
    if (!next) break;
    at = next;
  }
  return at?.matches('details') ? $(':scope > summary', at) : at;
};
const cell = (table, pointer) => {
  const at = `${table.dataset.at}/`;
  if (!pointer.startsWith(at)) return null;
  const [row, column] = pointer.slice(at.length).split('/');
  const line = $$('tbody tr', table).find((one) => one.dataset.k === row);
  const place = $$('thead th', table).findIndex((one) => one.dataset.k === column);
  return (line && (place > 0 ? line.cells[place] : line.cells[1])) || null;
};
// Branches out of sight have a guessed height: once drawn they move the others, so it is looked for again.
const intoSight = (line, again = 4) => {
  line.scrollIntoView({ block: 'center', inline: 'nearest' });
  if (again) requestAnimationFrame(() => intoSight(line, again - 1));
};
const holder = (card, kind, whole) =>
  $$(`.result ${kind}[data-tree]`, card).find((one) => whole.startsWith(rootOf(one)) && !one.closest('.found'));
const show = async (card, whole) => {
  const table = holder(card, '.tbl', whole);
  let line = table && cell(table, whole.slice(rootOf(table).length));
  if (!line) {
    const button = $('.views [data-view=tree]', card);
    if (!holder(card, '.json', whole) && button) await view(button);
    const tree = holder(card, '.json', whole);
    line = tree && (await walk(tree, whole.slice(rootOf(tree).length)));
  }
  if (!line) return;
  pick(line);
  line.closest(HOLDS).focus({ preventScroll: true });
  intoSight(line);
};
const showHit = (button) => {
  const card = button.closest('.call') ?? document;
  const search = button.closest('.findin, .jfind');
  // A hit names its place in the value that was searched, a finding its place in the result.
  const root = search
    ? (new URL($('input', search).getAttribute('hx-get'), location.href).searchParams.get('root') ?? '')
    : '';
  return show(card, root + button.dataset.show);
};
// A press on a hit must not take the focus away from the field, or the list would be gone before the click.
document.addEventListener('pointerdown', (event) => {
  if (event.target.closest?.('.findin .found')) event.preventDefault();
});
document.addEventListener('keydown', (event) => {
  const box = event.target.closest?.('.findin input');
  if (!box) return;
  const hits = $$('[data-show]', box.parentElement);
  if (event.key === 'Enter' && hits.length) {
    event.preventDefault();
    showHit(hits[0]);
  } else if (event.key === 'ArrowDown' && hits.length) {
    event.preventDefault();
    hits[0].focus();
  } else if (event.key === 'Escape' && box.value) {
    event.stopPropagation();
    box.value = '';
    $('.found', box.parentElement).replaceChildren();
  }
});

// ==== copying: a result, or the path and the value of the line that was picked last

/** The label says how it went, and the button keeps its width: its neighbours stay where they are. */
const copy = async (button, text) => {
  const words = [...button.childNodes];
  const say = (said) => {
    if (!button.style.width) button.style.width = `${button.getBoundingClientRect().width}px`;
    button.replaceChildren(said);
  };
  if (button.dataset.copied) return;
  button.dataset.copied = '1';
  try {
    await navigator.clipboard.writeText(await text);
    say('Copied');
  } catch {
    say('Not copied');
  }
  setTimeout(() => {
    button.replaceChildren(...words);
    button.style.width = '';
    delete button.dataset.copied;
  }, 1500);
};
let picked = null;
const pick = (line) => {
  picked?.classList.remove('jp');
  picked = line;
  $('#jbar')?.remove();
  line.classList.add('jp');
  const path = pathOf(line);
  if (!line.closest('[data-tree]')) return;
  const bar = make('span', { id: 'jbar' }, make('code', { role: 'status', text: path || '/' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'path', text: 'Copy path' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'value', text: 'Copy value' }));
  if (line.matches('td')) line.append(bar);
  else line.after(bar);
};

// ---- by keyboard: arrows pick a line or a cell, left and right fold a branch, Enter goes to the buttons, Escape back
const step = (tree, here, by) => {
  const lines = $$('.l:not(.jz), summary', tree).filter((line) => line.checkVisibility());
  const at = here ? lines.indexOf(here) + by : 0;
  const next = lines[Math.max(0, Math.min(lines.length - 1, at))];
  if (!next) return false;
  pick(next);
  next.scrollIntoView({ block: 'nearest' });
  return true;
};
const CELLS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
const stepCell = (table, here, [down, right]) => {
  const all = $('tbody', table).rows;
  const row = here ? all[here.parentElement.sectionRowIndex + down] : all[0];
  const next = row?.cells[here ? here.cellIndex + right : 1];
  if (next && next.cellIndex > 0) pick(next);
  next?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  return true;
};
const act = (event, tree) => {
  const here = picked?.isConnected && tree.contains(picked) ? picked : null;
  if (event.key === 'Enter' && here && event.target === tree) {
    if (here.matches('button')) here.click();
    else if (!$('#jbar')) return false;
    else $('#jbar button').focus();
    return true;
  }
  if (tree.matches('.tbl')) return CELLS[event.key] ? stepCell(tree, here, CELLS[event.key]) : false;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) return step(tree, here, by);
  if (here?.matches('summary') && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
    here.parentElement.open = event.key === 'ArrowRight';
    return true;
  }
  return false;
};
document.addEventListener('keydown', (event) => {
  const tree = event.target.closest?.(HOLDS);
  if (!tree || modified(event)) return;
  if (!event.target.closest('#jbar')) {
    if (!event.target.closest('thead, tfoot') && act(event, tree)) event.preventDefault();
  } else if (event.key === 'Escape') {
    event.stopPropagation();
    tree.focus();
  }
});

// ==== what is pressed

const DEEDS = [
  ['.json button[data-more]', more],
  ['button[data-fold]', foldAll],
  ['.tbl button[data-sort]', sort],
  ['.tbl button[data-rows]', rows],
  [
    '.tbl button[data-columns]',
    (button) => redraw(button.closest('.tbl'), { ...ordered(button.closest('.tbl')), wide: 1 }),
  ],
  [
    '.views button[data-view]',
    (button) => {
      choose(button.closest('.call').dataset.of, 'view', button.dataset.view);
      return view(button);
    },
  ],
  [
    '.as button[data-as]',
    (button) => {
      const of = button.closest('.call')?.dataset.of;
      if (of && $('[data-as=markdown]', button.parentElement)) choose(of, 'text', button.dataset.as);
      return showAs(button);
    },
  ],
  ['button[data-show]', showHit],
  ['button[data-copy]', (button) => copy(button, fetched(button.dataset.copy))],
  [
    '#jbar button[data-pick]',
    (button) => {
      const pointer = pathOf(picked);
      const isPath = button.dataset.pick === 'path';
      return copy(button, isPath ? pointer : fetched(address(source(picked), { pointer, value: 1 })));
    },
  ],
];
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  for (const [selector, deed] of DEEDS) if (at(selector)) return deed(at(selector));
  const line = at('.json[data-tree] .l[data-k], .json[data-tree] summary, .tbl tbody td:not(.ix)');
  if (line && !at('#jbar') && !getSelection()?.toString()) pick(line);
});

// ---- a menu closes by a press beside it, by Escape, and when something in it was done
const menus = (except) => {
  for (const one of $$('details.dots[open]')) if (one !== except) one.open = false;
};
document.addEventListener('click', (event) => {
  const here = event.target.closest?.('details.dots');
  menus(event.target.closest?.('.menu :is(a, button:not([data-copy]))') ? null : here);
});
document.addEventListener('keydown', (event) => {
  const here = $('details.dots[open]');
  if (event.key !== 'Escape' || !here) return;
  event.stopPropagation();
  here.open = false;
  $('summary', here).focus();
});
