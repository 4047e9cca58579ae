// A call on the page of its tool: once it is sent the form folds to one line and its result comes into sight. Nobody who
// types is disturbed: a form that has changed since stays open.
import { $, $$, tab } from './page.js';

const bench = $('.bench');
const FOLDED = `parley-folded:${location.pathname}`;
const ACTS = /\/(call|get|read|compose|retry)(\/|$)/;
const RECENT = 5000;
/** What of the room a result gets at least, before the page scrolls for it. */
const SHARE = 0.4;

const form = () => $('#tool-form, #prompt-form', bench ?? document);
const typed = (element) => new URLSearchParams([...new FormData(element)].map(([k, v]) => [k, String(v)])).toString();

// ---- who sent it by the keyboard goes on from the line that stands in for the form: Enter leads back into it
let handover = Number.NEGATIVE_INFINITY;
const giveFocus = () => {
  const edit = $('#calls > .call:first-child [data-edit]');
  const here = document.activeElement;
  const isFree = here === document.body || here?.matches('[data-edit]') || !here?.checkVisibility();
  if (performance.now() < handover && isFree) edit?.focus({ preventScroll: true });
};

// ---- the form: folded when its call has left, unfolded by Edit
const fold = (on, { focus = false } = {}) => {
  const held = !!bench?.contains(document.activeElement) && !!form()?.contains(document.activeElement);
  bench.toggleAttribute('data-folded', on);
  if (on) tab.set(FOLDED, '1');
  else tab.remove(FOLDED);
  if (on && held) {
    handover = performance.now() + RECENT;
    requestAnimationFrame(giveFocus);
  }
  if (on || !focus) return;
  bench.scrollIntoView({ block: 'nearest' });
  const stops = $$('input, select, textarea, button', form()).filter(
    (one) => !one.matches('[type=hidden], [type=file], :disabled, .seg *') && one.checkVisibility(),
  );
  // The buttons above the fields (saved requests, the last arguments) are no place to type.
  (stops.find((one) => !one.closest('header')) ?? stops[0])?.focus();
};

let called = Number.NEGATIVE_INFINITY;
let sent = '';
// It folds in the moment in which the card comes, so that the page is laid out once for both; and soon without one.
const CARD_COMES = 60;
let folding = 0;
const stay = () => {
  clearTimeout(folding);
  folding = 0;
};
const foldNow = () => {
  stay();
  fold(true);
};
document.addEventListener('input', stay);
let mine = false;
const action = (event) => String(event.detail?.ctx?.request?.action).split('?')[0];

document.addEventListener('htmx:before:request', (event) => {
  if (!ACTS.test(action(event))) return;
  called = performance.now();
  const [of, verb] = action(event).split('/').slice(-2);
  const own = !!bench && event.target === form();
  mine = own || (verb === 'retry' && bench?.dataset.call === `call-${of}`);
  if (own) sent = typed(form());
});
document.addEventListener('htmx:after:request', (event) => {
  const { status, headers } = event.detail.ctx?.response ?? {};
  if (!bench || !event.target.matches?.('#tool-form, #prompt-form') || !ACTS.test(action(event))) return;
  if (headers?.get('parley-not-sent')) return;
  // A form that was refused before comes back with 200, without the sentences of then.
  if (status === 200) return fold(true);
  if (status !== 204 || typed(form()) !== sent) return;
  if (called < 0) fold(true);
  else folding = setTimeout(foldNow, CARD_COMES);
});
document.addEventListener('click', (event) => {
  // a button of that name edits what a server asks
  const edit = event.target.closest?.('a[data-edit]');
  if (!edit || !bench?.hasAttribute('data-folded') || event.ctrlKey || event.metaKey) return;
  // The form holds what this tab has sent; for the arguments of another call the link leads to a form with those.
  if (bench.dataset.call && edit.closest('.call').id !== bench.dataset.call) return;
  event.preventDefault();
  fold(false, { focus: true });
});

// ---- the result comes into sight when less than its share of the room shows it
const reveal = (card) => {
  const main = $('#main').getBoundingClientRect();
  const [top, bottom] = [Math.max(0, main.top), Math.min(innerHeight, main.bottom)];
  const at = card.getBoundingClientRect();
  const isSeen = at.top >= top - 1 && bottom - at.top >= (bottom - top) * SHARE;
  if (!isSeen) card.scrollIntoView({ block: 'start' });
};
const calls = $('#calls');
if (calls) {
  new MutationObserver((changes) => {
    const card = changes.flatMap((change) => [...change.addedNodes]).find((node) => node.matches?.('.call'));
    if (card && performance.now() - called < RECENT) {
      called = Number.NEGATIVE_INFINITY;
      if (bench && mine) bench.dataset.call = card.id;
      if (folding) foldNow();
      // The form may fold in this very moment, and make room by that.
      requestAnimationFrame(() => {
        reveal(card);
        giveFocus();
      });
    }
    while (calls.childElementCount > +(calls.dataset.cap ?? Infinity)) calls.lastElementChild.remove();
  }).observe(calls, { childList: true });
}

// ---- a page that is loaded again is as it was left; one that is opened anew shows its form
const filled = bench && `call-c${bench.dataset.filled}`;
if (bench && tab.get(FOLDED) && !location.search && calls?.firstElementChild?.id === filled) {
  bench.dataset.call = filled;
  fold(true);
}
