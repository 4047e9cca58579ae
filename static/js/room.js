// The room of a page: an empty inbox is folded to a strip, unless somebody wants to see it all the same.
import { $, browser, root } from './page.js';

const INBOX = 'parley-inbox';

// Whether anything is in it is said at the body, by the server and then here. Not by `:has()` in the styles: that has the
// whole page looked at again for every row of the log.
const lists = [$('#asks'), $('#kept'), $('#inbox > #sign-in')].filter(Boolean);
const look = () => {
  const isAsked = !!$(':is(#asks, #kept) > .ask');
  document.body.toggleAttribute('data-empty', !isAsked && !$('#inbox > #sign-in > *'));
  if (isAsked) import('./asks.js');
};
const watch = new MutationObserver(look);
for (const one of lists) watch.observe(one, { childList: true });
if (lists.length) look();

// That choice is kept in this browser, and static/theme.js applies it before the first paint. An ask opens the inbox
// whatever was chosen.
const show = (open) => {
  if (open) root.dataset.inbox = 'open';
  else delete root.dataset.inbox;
  browser.set(INBOX, open ? 'open' : '');
};
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  // The count leads to the inbox of this page where there is one to be seen, else to the page of the inbox. Which ask is
  // the next one asks.js knows.
  if (at('#waiting') && !event.ctrlKey && !event.metaKey && $('#inbox')?.checkVisibility()) {
    event.preventDefault();
    if ($('#inbox-open').checkVisibility()) $('#inbox-open').click();
    else $('#inbox-title').focus();
  }
  if (!at('#inbox-open, #inbox-fold')) return;
  show(!!at('#inbox-open'));
  $(at('#inbox-open') ? '#inbox-title' : '#inbox-open').focus();
});
