// A model that answers a sampling, in its card: words that come, the keyboard, and what a person changes in the answer.

import { edits, words } from './edits.js';
import { $, $$, make, write } from './page.js';

const panel = '[id$="-model"].as-model';
const cardOf = (node) => node.closest?.('.ask');

// ---- words go to the end of one text: nothing else of the card is laid out anew
const grow = (place) => {
  const [first, ...rest] = place.childNodes;
  for (const node of rest) {
    if (node.nodeType !== Node.TEXT_NODE || first.nodeType !== Node.TEXT_NODE) return;
    first.appendData(node.data);
    node.remove();
  }
};

// ---- what was changed in the answer, while it is typed. A box has line breaks of its own
const plain = (text) => text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
const mark = (box) => {
  const place = box.closest('[data-block]');
  if (!place) return;
  const before = box.dataset.written;
  const now = box.value;
  const isEdited = now !== plain(before);
  $('.edited', place).hidden = !isEdited;
  $('[data-marked]', place).hidden = !isEdited;
  if (!isEdited) return;
  write($('[data-edits]', place), `1 edit, ${words(now)}`);
  const said = edits(before, now).map(([tag, text]) => (tag ? make(tag, { text }) : text));
  $('[data-marked]', place).replaceChildren(...said);
};

// ---- the keyboard goes with the step: to Stop, then to the answer; only where it was in the card, or nowhere
const started = new Set();
const follow = (card) => {
  const here = document.activeElement;
  if (!started.has(card.dataset.ask) || (here !== document.body && !card.contains(here))) return;
  const { step } = $('.flow', card).dataset;
  // The parts of a card come one after the other: the place may not be there yet.
  const to = { writes: '[data-stop]', answer: '.answer textarea', failed: '.step .go' }[step];
  const place = to && $(to, card);
  if (!place) return;
  if (step !== 'writes') started.delete(card.dataset.ask);
  place.focus({ preventScroll: true });
};

/** A card has changed: perhaps its draft is a step further. What else moves in it, like a clock, is none. */
const steps = new WeakMap();
const stepped = (card) => {
  const { step, number } = $('.flow', card)?.dataset ?? {};
  if (!step) return;
  for (const box of $$('.answer textarea', card)) mark(box);
  const isNew = steps.get(card) !== `${step} ${number}`;
  steps.set(card, `${step} ${number}`);
  if (isNew && step !== 'request') show(card);
  follow(card);
};
/** A model writes: the card shows it, unless somebody answers another way there, and then only that there is something. */
const show = (card) => {
  const model = $('[name="as"][value="model"]', card);
  if (model.checked) return;
  const isTyping = $$('[name="text"], [name="json"], [name="use-text"]', card).some((box) => box.value);
  if (isTyping || $('.as-tool .use', card)) model.closest('label').dataset.news = '';
  else model.checked = true;
};

const look = (changes) => {
  const cards = new Set();
  for (const { target, addedNodes, removedNodes } of changes) {
    // our own marks
    if (target.closest?.('[data-block]')) continue;
    const place = target.closest?.('[data-draft]');
    if (place) grow(place);
    const card = cardOf(target);
    if (card && target.closest(`${panel}, .step, [id$="-flow"]`)) cards.add(card);
    for (const node of addedNodes) if (node.matches?.('.ask') && $(panel, node)) cards.add(node);
    for (const node of removedNodes) keepTyped(card, node);
  }
  for (const card of cards) if (card.isConnected) stepped(card);
};
/** Another draft takes the place of one in which somebody has typed: their words stay below it. */
const keepTyped = (card, node) => {
  if (!card || !node.matches?.('.answer')) return;
  const typed = $$('textarea', node).filter((box) => box.value !== plain(box.dataset.written));
  if (!typed.length || started.has(card.dataset.ask)) return;
  const text = typed.map((box) => box.value).join('\n\n');
  const kept = make('details', { name: 'fold3 typed-before', open: '' }, make('summary', { text: 'You had typed' }));
  kept.append(make('p', { name: 'marked s', text }));
  $('.typed-before', card)?.remove();
  $(panel, card).after(kept);
};

for (const list of $$('#main, body > #inbox')) {
  new MutationObserver(look).observe(list, { childList: true, subtree: true });
}
for (const card of $$('.ask')) if ($(panel, card)) stepped(card);

document.addEventListener('input', ({ target }) => {
  if (target.matches?.('.answer textarea')) mark(target);
  if (target.name === 'as' && target.value === 'model') delete target.closest('label').dataset.news;
});
document.addEventListener('htmx:before:request', (event) => {
  const button = event.target.closest?.('[data-draft-by]');
  if (button) started.add(cardOf(button).dataset.ask);
});
document.addEventListener('click', ({ target }) => {
  const at = (selector) => target.closest?.(selector);
  const card = cardOf(target);
  if (at('[data-undo-edit]')) {
    const box = $('textarea', at('[data-block]'));
    box.value = plain(box.dataset.written);
    box.dispatchEvent(new Event('input', { bubbles: true }));
    box.focus();
  } else if (at('[data-by-hand]')) {
    const box = $('[name="text"]', card);
    const draft = $('[data-draft]', card)?.textContent;
    if (!box.value && draft) box.value = draft;
    $('[name="as"][value="text"]', card).checked = true;
    box.dispatchEvent(new Event('input', { bubbles: true }));
    box.focus();
  }
});
