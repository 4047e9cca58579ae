// A call that this page makes comes into sight: below a long form nobody would see that something happens.
import { $ } from './dom.js';

const ACTS = /\/(call|get|read|compose|retry)(\/|$)/;
const RECENT = 5000;
const ROOM = 48;
let called = Number.NEGATIVE_INFINITY;

const reveal = (card) => {
  const head = $('header', card) ?? card;
  const [at, room] = [head.getBoundingClientRect(), $('#main').getBoundingClientRect()];
  const isSeen = at.top >= Math.max(0, room.top) && at.bottom + ROOM <= Math.min(innerHeight, room.bottom);
  if (!isSeen) head.scrollIntoView({ block: 'center' });
};

document.addEventListener('htmx:before:request', (event) => {
  if (ACTS.test(String(event.detail?.ctx?.request?.action).split('?')[0])) called = performance.now();
});
const calls = $('#calls');
if (calls) {
  new MutationObserver((changes) => {
    const card = changes.flatMap((change) => [...change.addedNodes]).find((node) => node.matches?.('.call'));
    if (card && performance.now() - called < RECENT) {
      called = Number.NEGATIVE_INFINITY;
      reveal(card);
    }
    while (calls.childElementCount > +(calls.dataset.cap ?? Infinity)) calls.lastElementChild.remove();
  }).observe(calls, { childList: true });
}
