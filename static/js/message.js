// One message of the log, opened: beside the rows, or as a sheet over them where there is no room. And the way through
// the rows by keyboard: j, k and the arrows move, Enter opens, Escape closes and goes back to the row.
import { isFiltered, isFollowing, shownRows, toNewest } from './log.js';
import { $, $$, base, modified, typedInto, write } from './page.js';

const ROWS = ':is(#log, #found)';
const SHEET = matchMedia('(max-width: 56rem)');
const rowsOf = (seq) => $$(`:is(#m${CSS.escape(seq)}, #f${CSS.escape(seq)}) > .m`);
// On the log's own page the address says which message is open, and back closes it. A filter has the address then.
const hasAddress = () => !!$('#log-filter') && !isFiltered();

/** Mark the rows of the message that is open, and of its pair. */
const markOpen = () => {
  for (const row of $$(`${ROWS} .m:is([aria-current], .pair)`)) {
    row.removeAttribute('aria-current');
    row.classList.remove('pair');
  }
  const shown = $('#message');
  $('#logsplit')?.toggleAttribute('data-open', !!shown);
  if (!shown) return;
  for (const seq of shown.dataset.seqs.trim().split(' ')) for (const row of rowsOf(seq)) row.classList.add('pair');
  for (const row of rowsOf(shown.dataset.seq)) {
    row.classList.remove('pair');
    row.setAttribute('aria-current', 'true');
  }
};

// Who walks quickly through the rows sees the message that he stands on, and not each one on the way.
// Who closes one that is on its way has closed it.
let wanted = '';
let loads = false;
let isClosed = false;
const fetchMessage = async (href) => {
  wanted = href;
  isClosed = false;
  // a message is shown as a tree
  import('./results.js');
  if (loads) return true;
  loads = true;
  while (wanted) {
    const next = wanted;
    wanted = '';
    await htmx.ajax('GET', next, { source: $('#detail'), target: '#detail', swap: 'innerHTML' });
  }
  loads = false;
  if (isClosed) $('#detail').replaceChildren();
  $('#detail').scrollTop = 0;
  markOpen();
  return !isClosed;
};
const reveal = (row) => {
  if (isFollowing() && !SHEET.matches && !row.closest('li').nextElementSibling) toNewest();
  else row.scrollIntoView({ block: 'nearest' });
};
const openMessage = async (row, isStep = false) => {
  const href = row.getAttribute('href');
  const isFirst = !$('#message');
  if (!(await fetchMessage(href))) return;
  if (hasAddress()) history[isStep && !isFirst ? 'replaceState' : 'pushState']({ message: href }, '', href);
  reveal(row);
  if (SHEET.matches && !$('#detail').contains(document.activeElement)) $('#detail').focus({ preventScroll: true });
};
const emptyMessage = () => {
  wanted = '';
  isClosed = true;
  $('#detail').replaceChildren();
  markOpen();
};
const closeMessage = () => {
  const current = $('.m[aria-current]', shownRows());
  emptyMessage();
  if (current) walkTo(current);
  if (hasAddress()) history.pushState({ message: '' }, '', `${base()}/log`);
};

// ---- the way through the rows: one of them is a stop of the Tab key, the one where somebody was last
let stop = null;
const walkTo = (row) => {
  if (stop && stop !== row) stop.tabIndex = -1;
  stop = row;
  row.tabIndex = 0;
  row.focus({ preventScroll: true });
  reveal(row);
};
// Who comes by Tab finds one, too, where nobody was before.
document.addEventListener('focusin', ({ target }) => {
  if (target.id !== 'logscroll' || (stop?.isConnected && shownRows().contains(stop))) return;
  if (stop) stop.tabIndex = -1;
  stop = shownRows().lastElementChild?.firstElementChild;
  if (stop) stop.tabIndex = 0;
});
const here = () => {
  const focused = document.activeElement?.closest?.(`${ROWS} .m`);
  const known =
    focused ?? $('.m[aria-current]', shownRows()) ?? (stop?.isConnected && stop.checkVisibility() ? stop : null);
  return known?.closest('li');
};
/** The row before or after the one where somebody is; the newest where nobody is anywhere. */
const beside = (by) => {
  const row = here();
  if (!row) return shownRows().lastElementChild;
  return by > 0 ? row.nextElementSibling : row.previousElementSibling;
};
const step = (by) => {
  const row = beside(by)?.firstElementChild;
  if (!row) return;
  const inSheet = SHEET.matches && $('#message');
  if (!inSheet) walkTo(row);
  if ($('#message') && row.matches('a')) openMessage(row, true);
};

const BY = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
const ENDS = { Home: 'firstElementChild', End: 'lastElementChild' };
const inFold = (event) => event.target.closest?.('.foldrow');

document.addEventListener('keydown', (event) => {
  if (modified(event) || event.shiftKey || !$('#logsplit')) return;
  const { key, target } = event;
  if (typedInto(target) && !target.matches('[type=radio], [type=checkbox]')) return;
  const inRows = !!target.closest?.('#logscroll');
  const onPage = !!$('#log-filter') && target === document.body;
  const isLetter = key === 'j' || key === 'k';
  if (key === 'Escape' && $('#message')) return closeMessage();
  if (inFold(event) && (key === 'ArrowRight' || key === 'ArrowLeft')) {
    const isOpen = inFold(event).getAttribute('aria-expanded') === 'true';
    if (isOpen !== (key === 'ArrowRight')) inFold(event).click();
  } else if (key in BY && (inRows || onPage || (isLetter && (target.closest('#detail') || $('#log-filter'))))) {
    step(BY[key]);
  } else if (key in ENDS && inRows) {
    const row = shownRows()[ENDS[key]]?.firstElementChild;
    if (row) walkTo(row);
  } else return;
  event.preventDefault();
});

// ---- copying a message as it crossed the wire
const copy = async (button) => {
  const words = $('span', button);
  try {
    const answer = await fetch(button.dataset.copyMessage, { headers: { accept: 'application/json' } });
    const { raw, raw_base64: bytes } = await answer.json();
    await navigator.clipboard.writeText(raw ?? bytes);
    write(words, 'Copied');
  } catch {
    write(words, 'Not copied');
  }
  setTimeout(() => write(words, 'Copy'), 1500);
};

document.addEventListener('click', (event) => {
  if (modified(event) || event.shiftKey || event.button || !$('#detail')) return;
  const at = (selector) => event.target.closest?.(selector);
  const row = at(`${ROWS} a.m`);
  if (row) {
    event.preventDefault();
    if (stop && stop !== row) stop.tabIndex = -1;
    stop = row;
    stop.tabIndex = 0;
    openMessage(row);
  } else if (at('#detail-close')) {
    event.preventDefault();
    closeMessage();
  } else if (at('#detail-older')) step(-1);
  else if (at('#detail-newer')) step(1);
  else if (at('[data-copy-message]')) copy(at('[data-copy-message]'));
  else if (SHEET.matches && $('#message') && !at('#detail, dialog, .toast')) closeMessage();
});

// ---- the sheet is pulled down by its head
const PULL = 72;
document.addEventListener('pointerdown', (event) => {
  const head = event.target.closest?.('#message > header');
  if (!head || !SHEET.matches || event.target.closest('a, button')) return;
  const from = event.clientY;
  head.setPointerCapture(event.pointerId);
  head.addEventListener('pointerup', (up) => up.clientY - from > PULL && closeMessage(), { once: true });
});

// ---- what the page begins with, and back and forth
if ($('#message')) {
  import('./results.js');
  markOpen();
  const current = $('#log .m[aria-current]');
  current?.scrollIntoView({ block: SHEET.matches ? 'nearest' : 'center' });
  if (current) current.tabIndex = 0;
  stop = current;
}
addEventListener('popstate', (event) => {
  if (!$('#log-filter')) return;
  const href = event.state?.message ?? (/\/log\/\d+$/.test(location.pathname) ? location.pathname : '');
  if (href) fetchMessage(href);
  else emptyMessage();
});
$('#log')?.addEventListener('parley:found', markOpen);
