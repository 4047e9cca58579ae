// The log of a page: its rows, one message opened beside them, its filter, and the drawer it stands in.
import { runs } from './decide.js';
import { $, $$, base, make, modified, tab, typedInto, write } from './page.js';

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

/** Whether a filter is on; its rows then stand in a list beside the log. */
const isFiltered = () => $('#found-mark')?.dataset.on !== undefined;
const shownRows = () => (isFiltered() ? $('#found') : log);
const isFollowing = () => sticks;
const newest = () => +(shownRows().lastElementChild?.id.slice(1) ?? 0);
const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < AT_END;

const toNewest = () => {
  if (!scroller) return;
  scroller.scrollTop = scroller.scrollHeight;
  seen = newest();
};
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
  const unseen = rows.filter((row) => +row.id.slice(1) > seen).length;
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
  const first = [...log.children].find((row) => row.className !== 'polls');
  $('#earlier button').value = first.id.slice(1);
  $('#earlier').hidden = false;
};
// ---- a run of polls (the same question and its replies, again and again) is one line, until it is opened. The server
// marks each row that may be folded; here they are only counted and put behind their line.
const line = () => {
  const cells = ['q', 'at', 'lane', 'meth', 'peek', 'z', 'z sz'].map((name) => make('span', { name }));
  return make('li', { name: 'polls' }, make('button', { name: 'm', type: 'button' }, ...cells));
};
const seq = (row) => row.id.slice(1);
const draw = (head, rows) => {
  const [first, last] = [rows[0], rows.at(-1)];
  const isOpen = head.dataset.open !== undefined;
  const asked = rows.filter((row) => row.dataset.k === 'request').length;
  head.id = `p${seq(first)}`;
  if (head.nextElementSibling !== first) first.before(head);
  head.firstElementChild.setAttribute('aria-expanded', String(isOpen));
  write($('.at', head), $('time', last).textContent);
  write($('.meth', head), first.dataset.poll);
  write($('.peek', head), `${asked} times, messages ${seq(first)} to ${seq(last)}. ${isOpen ? 'Fold' : 'Show'} them`);
  return isOpen;
};

const foldPolls = (list) => {
  if (!$('[data-poll], .polls', list)) return;
  // A line belongs to the row behind it, also when earlier rows were put before it.
  const heads = new Map($$('.polls', list).map((head) => [head.nextElementSibling, head]));
  const rows = [...list.children].filter((row) => row.className !== 'polls');
  const open = new Set(rows.filter((row) => row.dataset.poll));
  for (const [begin, end] of runs(rows.map((row) => row.dataset.poll))) {
    const run = rows.slice(begin, end);
    const head = run.map((row) => heads.get(row)).find((found) => found) ?? line();
    for (const [row, other] of heads) if (other === head) heads.delete(row);
    if (draw(head, run)) continue;
    for (const row of run) {
      open.delete(row);
      row.hidden = true;
    }
  }
  for (const row of open) row.hidden = false;
  for (const head of heads.values()) head.remove();
};

const onRows = (changes) => {
  foldPolls(log);
  if ((sticks || isFiltered()) && trim(log)) offerEarlier();
  if (sticks) toNewest();
  jump();
  const rows = changes.flatMap((change) => [...change.addedNodes]);
  log.dispatchEvent(new CustomEvent('parley:rows', { detail: rows.map((row) => +row.id?.slice(1)) }));
};

/** Fold the drawer to its bar, or unfold it; the tab remembers. */
const fold = (folded) => {
  if (!drawer) return;
  drawer.toggleAttribute('data-folded', folded);
  $('#fold').setAttribute('aria-expanded', String(!folded));
  write($('#fold'), folded ? 'Unfold' : 'Fold');
  tab.set('parley-log', folded ? 'folded' : '');
  if (!folded && sticks) toNewest();
};

if (log) {
  foldPolls(log);
  new MutationObserver(onRows).observe(log, { childList: true });
  scroller.addEventListener(
    'scroll',
    () => {
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
  if (tab.get('parley-log') === 'folded') fold(true);
  document.addEventListener('click', (event) => {
    const at = (selector) => event.target.closest?.(selector);
    if (at('#fold')) fold(!drawer.hasAttribute('data-folded'));
    if (at('#earlier, #earlier-found')) stick(false);
    if (at('.polls')) {
      at('.polls').toggleAttribute('data-open');
      stick(false);
      foldPolls(log);
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

// ==== one message, opened beside the rows; on a narrow page the link goes to its own page instead

const ROWS = ':is(#log, #found)';
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
const fetchMessage = async (href) => {
  await htmx.ajax('GET', href, { source: $('#detail'), target: '#detail', swap: 'innerHTML' });
  markOpen();
};
const openMessage = async (link) => {
  const href = link.getAttribute('href');
  await fetchMessage(href);
  if (hasAddress()) history.pushState({ message: href }, '', href);
  if (isFollowing()) toNewest();
  else link.scrollIntoView({ block: 'nearest' });
};
const emptyMessage = () => {
  $('#detail').replaceChildren();
  markOpen();
};
const closeMessage = () => {
  const current = $('.m[aria-current]', shownRows());
  emptyMessage();
  current?.focus();
  if (hasAddress()) history.pushState({ message: '' }, '', `${base()}/log`);
};

if ($('#message')) {
  markOpen();
  $('#log .m[aria-current]')?.scrollIntoView({ block: 'center' });
}
addEventListener('popstate', (event) => {
  if (!$('#log-filter')) return;
  const href = event.state?.message ?? (/\/log\/\d+$/.test(location.pathname) ? location.pathname : '');
  if (href) fetchMessage(href);
  else emptyMessage();
});
document.addEventListener('click', (event) => {
  if (modified(event) || event.shiftKey || event.button) return;
  const row = event.target.closest?.(`${ROWS} a.m`);
  if (row && $('#detail') && matchMedia('(min-width: 70rem)').matches) {
    event.preventDefault();
    openMessage(row);
  } else if (event.target.closest?.('#detail-close') && $('#log')) {
    event.preventDefault();
    closeMessage();
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !modified(event) && $('#message') && $('#logsplit')) closeMessage();
});

// ==== the filter. The server filters, in a list beside the log, and htmx asks when something is typed; here the same
// question is asked again when rows arrive, one at a time and not all the time

const LEAST_REST = 120;
let timer = null;
let askedAt = 0;
let rest = LEAST_REST;

const foundMark = () => $('#found-mark');
const filterForm = () => $('#log-filter') ?? $('#logfilter');
const isBehind = () => +($('#log').lastElementChild?.id.slice(1) ?? 0) > +foundMark().dataset.seq;
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
    markOpen();
    soon();
  }).observe(foundMark().parentElement, { childList: true });
  // What a browser put back into the field when it came back to the page.
  if ($('#logfilter').value && !isFiltered()) htmx.trigger(filterForm(), 'again');
}

// ==== the height of the drawer: by pointer, or by the arrows on the separator. The tab remembers

const HEIGHT = 'parley-drawer';
const LEAST_HEIGHT = 96;
const MOST_OF_TAB = 0.75;
const STEPS = { ArrowUp: 24, ArrowDown: -24, PageUp: 120, PageDown: -120 };
const grip = $('#grip');

const size = (pixels) => {
  const most = innerHeight * MOST_OF_TAB;
  const height = Math.round(Math.max(LEAST_HEIGHT, Math.min(most, pixels)));
  drawer.style.setProperty('--drawer', `${height}px`);
  drawer.toggleAttribute('data-sized', true);
  grip.setAttribute('aria-valuenow', height);
  grip.setAttribute('aria-valuemax', Math.round(most));
  return height;
};
const resize = (pixels) => tab.set(HEIGHT, size(pixels));

if (grip && drawer) {
  const kept = +tab.get(HEIGHT);
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
