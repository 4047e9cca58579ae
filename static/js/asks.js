// Asks in the page: what was typed stays, a settled card says so and takes no more, and the keyboard finds the next one.
import { $, $$, base, make, modified, write } from './dom.js';
import * as drafts from './drafts.js';

const cardOf = (ask, list = '') => $(`${list} #ask-${CSS.escape(ask)}`);

// ---- a card whose ask is settled: what was typed stays readable, and takes no more
const settle = (card) => {
  const word = $('[data-settled]', card)?.dataset.settled;
  const set = $('fieldset.plain-set', card);
  if (set) set.disabled = word !== undefined;
  if (!word || word === 'sending') return;
  card.dataset.s = word;
  card.removeAttribute('hx-morph-skip');
  for (const time of $$('time[data-deadline], time[data-since]', card)) time.replaceWith(word);
  for (const bar of $$('progress.ttl', card)) bar.remove();
  offer(card);
};
const offer = (card) => {
  const hasForm = !!$('form.in', card);
  const text = hasForm ? drafts.words(card) : (drafts.kept(card.dataset.ask)?.words ?? '');
  const button = $('[data-copy-typed]', card);
  if (!button || !text) return;
  button.hidden = false;
  button.dataset.words = text;
  if (hasForm) return;
  $('[data-typed] pre', card).textContent = text;
  $('[data-typed]', card).hidden = false;
};
const count = () => {
  const number = $('#n-settled');
  if (!number) return;
  write(number, String($$('#settled > li').length));
  $('#past').hidden = number.textContent === '0';
};
const look = (node) => {
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  const card = node.closest('.ask');
  if (card && node.matches('[data-settled]')) return settle(card);
  if (card && node.matches('.edit-fields > *')) return drafts.restore(card);
  for (const one of node.matches('.ask') ? [node] : $$('.ask', node)) {
    if (one.dataset.s !== 'open') {
      offer(one);
      continue;
    }
    const isNew = drafts.isNew(one);
    drafts.restore(one);
    if (isNew) tuck([one]);
  }
};
// The whole list came anew, and an ask is no longer in it: it was settled meanwhile. What was typed in its card must
// not go with the card.
const rescue = (card) =>
  setTimeout(() => {
    const list = $('#asks');
    const { ask } = card.dataset;
    if (!list || card.dataset.away || cardOf(ask, '#asks') || !drafts.kept(ask)?.words) return;
    const twin = cardOf(ask, '#settled >');
    if (twin) {
      offer(twin);
      $('details', twin).open = true;
      list.append(twin);
      return;
    }
    const text = 'This was settled meanwhile. What you had typed stays below.';
    list.append(card);
    $('.ask-state', card).replaceChildren(make('p', { name: 'dim', text, 'data-settled': 'settled' }));
  }, 150);
const putAway = async (card) => {
  card.dataset.away = '1';
  card.remove();
  if (!$('#settled')) return;
  await htmx.ajax('GET', `${base()}/asks/${card.dataset.ask}`, { target: '#settled', swap: 'afterbegin' });
  const back = cardOf(card.dataset.ask, '#settled >');
  if (back) $('details', back).open = false;
  const next = $('#next-ask');
  (next?.checkVisibility() ? next : $('#inbox-title'))?.focus();
};

// ---- on a narrow page the inbox stands above the page: one ask is open there, the others wait folded
const tuck = (cards) => {
  if (!matchMedia('(max-width: 70rem)').matches) return;
  const open = $$('.app > .inbox #asks > .ask[data-s=open]');
  for (const card of cards) {
    const isFirst = open.indexOf(card) <= 0;
    if (!isFirst && !drafts.kept(card.dataset.ask) && !card.contains(document.activeElement)) {
      $('details', card).open = false;
    }
  }
};

// ---- the next ask, by key or button
const goTo = (card) => {
  $('details', card).open = true;
  const controls = $$('.in :is(input:not([type=hidden]), select, textarea, button)', card);
  (controls.find((control) => control.checkVisibility()) ?? $('summary', card)).focus();
  card.scrollIntoView({ block: 'nearest' });
};
const next = () => {
  const open = $$('#asks .ask[data-s=open]');
  const now = open.findIndex((card) => card.contains(document.activeElement));
  if (open.length) goTo(open[(now + 1) % open.length]);
};

// ---- from here on the page lives
for (const card of $$('.ask')) {
  if (card.dataset.s === 'open') drafts.restore(card);
  else offer(card);
}
if ($('#asks')) drafts.prune();
if (!location.hash.startsWith('#ask-')) tuck($$('#asks > .ask[data-s=open]'));
for (const list of $$('#inbox, #main')) {
  new MutationObserver((changes) => {
    for (const { addedNodes, removedNodes, target } of changes) {
      for (const node of addedNodes) look(node);
      for (const node of removedNodes) if (target.id === 'asks' && node.matches?.('.ask')) rescue(node);
    }
    count();
  }).observe(list, { childList: true, subtree: true });
}
document.addEventListener('input', (event) => {
  const card = event.target.closest?.('.ask');
  if (card) drafts.keep(card);
});
document.addEventListener('htmx:after:request', (event) => {
  const card = event.target.closest?.('.ask');
  const { ctx } = event.detail ?? {};
  if (!card || ctx?.response?.status !== 200) return;
  const action = String(ctx.request?.action);
  // This tab has sent it: there is no draft any more. A request that was edited is kept by Parley itself.
  if (action.endsWith('/answer')) drafts.forget(card.dataset.ask);
  if (action.endsWith('/request')) drafts.forgetEdits(card);
});
const copyTyped = (button) =>
  navigator.clipboard.writeText(button.dataset.words).then(
    () => write(button, 'Copied'),
    () => write(button, 'The browser does not allow copying'),
  );
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at('#next-ask')) return next();
  // The count leads to the inbox of this page where there is one to be seen, else to the page of the inbox.
  if (at('#waiting') && !event.ctrlKey && !event.metaKey && $('#inbox')?.checkVisibility()) {
    event.preventDefault();
    return $('#asks .ask[data-s=open]') ? next() : $('#inbox-title').focus();
  }
  if (at('[data-put-away]')) return putAway(at('.ask'));
  if (at('[data-copy-typed]')) return copyTyped(at('[data-copy-typed]'));
  const card = at('[data-to-ask]') && document.getElementById(`ask-${at('[data-to-ask]').dataset.toAsk}`);
  if (card) {
    event.preventDefault();
    return goTo(card);
  }
  // The link opens in its own window by itself; opening it is the consent, so the answer leaves with it.
  const form = at('a[data-accept]')?.closest('form');
  if (!form) return;
  if ($('[data-consent]', form).checked) {
    setTimeout(() => form.requestSubmit($('button[value=accept]', form)));
    return;
  }
  event.preventDefault();
  $('[data-consent]', form).focus();
});
// Enter sends what it stands beside: in the fields of an error the error, on the box of consent nothing.
const sentBy = (event, card) => {
  const { target } = event;
  if (target.matches('[id$=-code], [id$=-why]')) return $('button[value=fail]', card);
  if (target.matches('input[name^=edit-]')) return $('[data-edit=save]', card);
  if (event.ctrlKey || event.metaKey) return $('button.go[name=action]', card);
  return target.matches('[data-consent]') ? null : undefined;
};
document.addEventListener(
  'keydown',
  (event) => {
    const card = event.key === 'Enter' && event.target.closest?.('.ask');
    if (!card || event.altKey || event.isComposing) return;
    const button = sentBy(event, card);
    if (button === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    button?.click();
  },
  true,
);
document.addEventListener('keydown', (event) => {
  if (event.key !== 'n' || modified(event)) return;
  if (event.target.matches?.('input:not([type=checkbox], [type=radio]), textarea, select')) return;
  event.preventDefault();
  next();
});
