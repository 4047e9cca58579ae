// The log of a page: no more rows than a tab can hold, the newest in sight, and how many are new.
import { $, modified, tab, typedInto, write } from './dom.js';
import { fold as foldPolls } from './polls.js';

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
