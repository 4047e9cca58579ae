// The filter of the log. The server filters, in a list beside the log, and htmx asks when something is typed; here the
// same question is asked again when rows arrive, one at a time and not all the time.
import { $ } from './dom.js';
import { isFiltered, isFollowing, shownRows, toNewest, trim } from './log.js';
import { select } from './message.js';

const LEAST = 120;
let timer = null;
let asked = 0;
let rest = LEAST;

const mark = () => $('#found-mark');
const filter = () => $('#log-filter') ?? $('#logfilter');
const isBehind = () => +($('#log').lastElementChild?.id.slice(1) ?? 0) > +mark().dataset.seq;
const goOn = () => {
  timer = null;
  if (isFiltered() && isBehind()) htmx.trigger(mark(), 'newer');
};
const soon = () => {
  if (isFiltered() && timer === null) timer = setTimeout(goOn, rest);
};

if (mark()) {
  $('#log').addEventListener('parley:rows', (event) => {
    // A row that is drawn anew has a finding now: what matches may have changed behind the mark.
    const anew = isFiltered() && event.detail.some((seq) => seq <= +mark().dataset.seq);
    if (anew) htmx.trigger(filter(), 'again');
    else soon();
  });
  // Never more than a third of the time is spent on a filter, however many rows arrive.
  document.addEventListener('htmx:before:request', (event) => {
    if (event.target === mark() || event.target === filter()) asked = performance.now();
  });
  new MutationObserver((changes) => {
    if (!changes.some((change) => [...change.addedNodes].includes(mark()))) return;
    rest = Math.max(LEAST, 2 * (performance.now() - asked));
    if ($('#log-filter') && location.href !== new URL(mark().dataset.url, location.href).href) {
      history.replaceState(null, '', mark().dataset.url);
    }
    if (isFollowing()) {
      trim(shownRows());
      toNewest();
    }
    select();
    soon();
  }).observe(mark().parentElement, { childList: true });
  // What a browser put back into the field when it came back to the page.
  if ($('#logfilter').value && !isFiltered()) htmx.trigger(filter(), 'again');
}
