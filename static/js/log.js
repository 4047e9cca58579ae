// The log of a page: its rows, its filter, and the drawer it stands in. A message that is opened is in message.js, what
// repeats in folds.js.
import { Folds, last } from './folds.js';
import { $, browser, modified, root, typedInto, write } from './page.js';

// ==== the rows: no more than a tab can hold, the newest in sight, and how many are new

const CAP = 1000;
const SLACK = 50;
const AT_END = 40;

const log = $('#log');
const scroller = $('#logscroll');
const drawer = $('#drawer');
// Following: the newest row stays in sight. Scrolling up ends it, scrolling down resumes it, unless it was switched off.
let sticks = true;
let follows = true;
let seen = 0;
/** Where the end was when the log was last moved to it. */
let put = 0;
/** What repeats, of each list. */
const folds = new Map();

/** Whether a filter is on; its rows then stand in a list beside the log. */
export const isFiltered = () => $('#found-mark')?.dataset.on !== undefined;
export const shownRows = () => (isFiltered() ? $('#found') : log);
export const isFollowing = () => sticks;
const newest = () => folds.get(shownRows())?.newest ?? 0;
const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < AT_END;

export const toNewest = () => {
  if (!scroller) return;
  scroller.scrollTop = scroller.scrollHeight;
  put = scroller.scrollTop;
  seen = newest();
};
// Once for each frame, and not for each row: to know where the end is, the browser has to lay out the whole page.
let due = 0;
const toNewestSoon = () => {
  seen = newest();
  due ||= requestAnimationFrame(() => {
    due = 0;
    if (sticks) toNewest();
  });
};
/** Rows came since the log was last moved to its end, and nobody but us has moved it. */
const isOurs = () => !!due && scroller.scrollTop >= put;
const stick = (now) => {
  sticks = now;
  const button = $('#follow');
  if (!button) return;
  button.setAttribute('aria-pressed', String(sticks));
  write($('span', button), sticks ? 'Following' : 'Follow');
};
const jump = () => {
  const button = $('#jump');
  const rows = newest() > seen ? [...shownRows().children] : [];
  const unseen = rows.filter((row) => last(row) > seen).length;
  button.hidden = sticks || !unseen;
  if (unseen) write(button, `${unseen} new, jump to the newest`);
};

/** Take the oldest rows away when there are too many; says whether it did. */
const trim = (rows) => {
  const extra = rows.childElementCount - CAP;
  if (extra <= SLACK) return false;
  const range = document.createRange();
  range.setStartBefore(rows.firstElementChild);
  range.setEndBefore(rows.children[extra]);
  range.deleteContents();
  return true;
};
const offerEarlier = () => {
  $('#earlier button').value = log.firstElementChild.id.slice(1);
  $('#earlier').hidden = false;
};
/** Rows were put into a list: at its end, before its beginning, or all of them anew. */
const refold = (list, changes) => {
  const mine = folds.get(list);
  const added = changes.flatMap((change) => [...change.addedNodes]).filter((row) => row.nodeType === 1);
  const isWhole = changes.some(
    ({ removedNodes, previousSibling, nextSibling }) => removedNodes.length && !previousSibling && !nextSibling,
  );
  const before = changes.find(
    ({ addedNodes, previousSibling, nextSibling }) => addedNodes.length && !previousSibling && nextSibling,
  );
  if (isWhole) mine.restart();
  else if (before) mine.seam(before.nextSibling);
  else mine.take(added);
  return added;
};
const watch = (list, then) => {
  folds.set(list, new Folds(list));
  const observer = new MutationObserver((changes) => {
    then(refold(list, changes));
    // what was done here is no news
    observer.takeRecords();
  });
  observer.observe(list, { childList: true });
};
const onRows = (rows) => {
  if ((sticks || isFiltered()) && trim(log)) {
    offerEarlier();
    put = 0;
  }
  if (sticks) toNewestSoon();
  jump();
  log.dispatchEvent(new CustomEvent('parley:rows', { detail: rows.map((row) => +row.id?.slice(1)) }));
};

/** Fold the drawer to its bar, or unfold it; the browser remembers, and static/theme.js applies it before the first paint. */
const fold = (folded) => {
  if (!drawer) return;
  drawer.toggleAttribute('data-folded', folded);
  if (folded) root.dataset.log = 'folded';
  else delete root.dataset.log;
  $('#fold').setAttribute('aria-expanded', String(!folded));
  write($('#fold'), folded ? 'Unfold' : 'Fold');
  browser.set('parley-log', folded ? 'folded' : '');
  if (!folded && sticks) toNewest();
};

if (log) {
  watch(log, onRows);
  watch($('#found'), () => {});
  scroller.addEventListener(
    'scroll',
    () => {
      if (isOurs()) return;
      stick(follows && atEnd());
      if (atEnd()) seen = newest();
      jump();
    },
    { passive: true },
  );
  if ($('#message')) {
    stick(atEnd());
    seen = newest();
  } else toNewest();
  if (browser.get('parley-log') === 'folded') fold(true);
  document.addEventListener('click', (event) => {
    const at = (selector) => event.target.closest?.(selector);
    if (at('#fold')) fold(!drawer.hasAttribute('data-folded'));
    if (at('#earlier, #earlier-found')) stick(false);
    if (at('.foldrow')) {
      stick(false);
      const head = at('.fold');
      folds
        .get(head.parentElement)
        .toggle(head, isFiltered() ? new URL(foundMark().dataset.url, location.href).search : '');
    }
    if (!at('#jump, #follow')) return;
    follows = at('#jump') ? true : !sticks;
    stick(follows);
    if (sticks) toNewest();
    jump();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || modified(event) || typedInto(event.target) || !$('#logfilter')) return;
    event.preventDefault();
    fold(false);
    $('#logfilter').focus();
  });
}

// ==== the filter. The server filters, in a list beside the log, and htmx asks when something is typed; here the same
// question is asked again when rows arrive, one at a time and not all the time

const LEAST_REST = 120;
let timer = null;
let askedAt = 0;
let rest = LEAST_REST;

const foundMark = () => $('#found-mark');
const filterForm = () => $('#log-filter') ?? $('#logfilter');
const isBehind = () => folds.get(log).newest > +foundMark().dataset.seq;
const goOn = () => {
  timer = null;
  if (isFiltered() && isBehind()) htmx.trigger(foundMark(), 'newer');
};
const soon = () => {
  if (isFiltered() && timer === null) timer = setTimeout(goOn, rest);
};

if (foundMark()) {
  $('#log').addEventListener('parley:rows', (event) => {
    // A row that is drawn anew has a finding now: what matches may have changed behind the mark.
    const anew = isFiltered() && event.detail.some((seq) => seq <= +foundMark().dataset.seq);
    if (anew) htmx.trigger(filterForm(), 'again');
    else soon();
  });
  // Never more than a third of the time is spent on a filter, however many rows arrive.
  document.addEventListener('htmx:before:request', (event) => {
    if (event.target === foundMark() || event.target === filterForm()) askedAt = performance.now();
  });
  new MutationObserver((changes) => {
    if (!changes.some((change) => [...change.addedNodes].includes(foundMark()))) return;
    rest = Math.max(LEAST_REST, 2 * (performance.now() - askedAt));
    if ($('#log-filter') && location.href !== new URL(foundMark().dataset.url, location.href).href) {
      history.replaceState(null, '', foundMark().dataset.url);
    }
    if (isFollowing()) {
      trim(shownRows());
      toNewest();
    }
    log.dispatchEvent(new CustomEvent('parley:found'));
    soon();
  }).observe(foundMark().parentElement, { childList: true });
  // An empty result offers a way back: without a page the drawer's field is emptied, with one the link is followed.
  document.addEventListener('click', (event) => {
    if (!event.target.closest?.('#filter-clear') || modified(event)) return;
    event.preventDefault();
    const form = filterForm();
    for (const field of form.elements ?? [form]) {
      if (field.type === 'radio') field.checked = !field.value;
      else if (field.type === 'checkbox') field.checked = false;
      else if ('value' in field && field.name) field.value = '';
    }
    htmx.trigger(form, 'again');
    $('#logfilter').focus();
  });
  // What a browser put back into the field when it came back to the page.
  if ($('#logfilter').value && !isFiltered()) htmx.trigger(filterForm(), 'again');
}

// ==== the height of the drawer: by pointer, or by the arrows on the separator. The browser remembers

const HEIGHT = 'parley-drawer';
const LEAST_HEIGHT = 96;
const MOST_OF_TAB = 0.75;
const STEPS = { ArrowUp: 24, ArrowDown: -24, PageUp: 120, PageDown: -120 };
const grip = $('#grip');

const size = (pixels) => {
  const most = innerHeight * MOST_OF_TAB;
  const height = Math.round(Math.max(LEAST_HEIGHT, Math.min(most, pixels)));
  root.style.setProperty('--drawer', `${height}px`);
  grip.setAttribute('aria-valuenow', height);
  grip.setAttribute('aria-valuemax', Math.round(most));
  return height;
};
const resize = (pixels) => browser.set(HEIGHT, size(pixels));

if (grip && drawer) {
  const kept = +browser.get(HEIGHT);
  if (kept) size(kept);
  else grip.setAttribute('aria-valuenow', Math.round(drawer.offsetHeight));
  grip.addEventListener('pointerdown', (event) => {
    if (drawer.hasAttribute('data-folded')) return;
    grip.setPointerCapture(event.pointerId);
    const [from, height] = [event.clientY, drawer.offsetHeight];
    const move = (moved) => resize(height + from - moved.clientY);
    grip.addEventListener('pointermove', move);
    grip.addEventListener('lostpointercapture', () => grip.removeEventListener('pointermove', move), { once: true });
  });
  grip.addEventListener('keydown', (event) => {
    const ends = { Home: LEAST_HEIGHT, End: innerHeight };
    const to = ends[event.key] ?? (event.key in STEPS && drawer.offsetHeight + STEPS[event.key]);
    if (!to) return;
    event.preventDefault();
    resize(to);
  });
}
