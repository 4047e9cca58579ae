// The log of a page: no more rows than a tab can hold, the newest in sight, and how many are new.
import { runs } from './decide.js';
import { $, $$, make, modified, tab, typedInto, write } from './dom.js';

const CAP = 1000;
const SLACK = 50;
const AT_END = 40;

const log = $('#log');
const scroller = $('#logscroll');
// Following: the newest row stays in sight. Scrolling up ends it, scrolling down resumes it, unless it was switched off.
let sticks = true;
let follows = true;
let seen = 0;

/** Whether a filter is on; its rows then stand in a list beside the log. */
export const isFiltered = () => $('#found-mark')?.dataset.on !== undefined;
export const shownRows = () => (isFiltered() ? $('#found') : log);
export const isFollowing = () => sticks;
const newest = () => +(shownRows().lastElementChild?.id.slice(1) ?? 0);
const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < AT_END;

export const toNewest = () => {
  if (!scroller) return;
  scroller.scrollTop = scroller.scrollHeight;
  seen = newest();
};
export const stick = (now) => {
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
export const trim = (rows) => {
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
  const drawer = $('#drawer');
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
    if (at('#fold')) fold(!$('#drawer').hasAttribute('data-folded'));
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
