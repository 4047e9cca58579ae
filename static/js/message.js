// One message, opened beside the rows; on a narrow page the link goes to its own page instead.
import { $, $$, base, modified } from './dom.js';
import { isFiltered, isFollowing, shownRows, toNewest } from './log.js';

const ROWS = ':is(#log, #found)';
const rowsOf = (seq) => $$(`:is(#m${CSS.escape(seq)}, #f${CSS.escape(seq)}) > .m`);
// On the log's own page the address says which message is open, and back closes it. A filter has the address then.
const hasAddress = () => !!$('#log-filter') && !isFiltered();

/** Mark the rows of the message that is open, and of its pair. */
export const select = () => {
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
const fetched = async (href) => {
  await htmx.ajax('GET', href, { source: $('#detail'), target: '#detail', swap: 'innerHTML' });
  select();
};
const open = async (link) => {
  const href = link.getAttribute('href');
  await fetched(href);
  if (hasAddress()) history.pushState({ message: href }, '', href);
  if (isFollowing()) toNewest();
  else link.scrollIntoView({ block: 'nearest' });
};
const empty = () => {
  $('#detail').replaceChildren();
  select();
};
const close = () => {
  const current = $('.m[aria-current]', shownRows());
  empty();
  current?.focus();
  if (hasAddress()) history.pushState({ message: '' }, '', `${base()}/log`);
};

if ($('#message')) {
  select();
  $('#log .m[aria-current]')?.scrollIntoView({ block: 'center' });
}
addEventListener('popstate', (event) => {
  if (!$('#log-filter')) return;
  const href = event.state?.message ?? (/\/log\/\d+$/.test(location.pathname) ? location.pathname : '');
  if (href) fetched(href);
  else empty();
});
document.addEventListener('click', (event) => {
  if (modified(event) || event.shiftKey || event.button) return;
  const row = event.target.closest?.(`${ROWS} a.m`);
  if (row && $('#detail') && matchMedia('(min-width: 70rem)').matches) {
    event.preventDefault();
    open(row);
  } else if (event.target.closest?.('#detail-close') && $('#log')) {
    event.preventDefault();
    close();
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !modified(event) && $('#message') && $('#logsplit')) close();
});
