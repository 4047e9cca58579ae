// Asks in the page: their cards, what was typed into them, and the time that is left.
import { sync } from './form.js';
import { $, $$, base, make, modified, root, tab, write } from './page.js';

// ==== drafts: what was typed and not sent is kept in this tab, and stays readable when the ask is over

const isBox = (field) => field.type === 'checkbox' || field.type === 'radio';
const fields = (card) =>
  $$('input[name], select[name], textarea[name]', card).filter(
    (field) => field.type !== 'hidden' && !['force', 'consent'].includes(field.name),
  );
// A draft belongs to its session, not to the path below which this browser sees it.
const draftKey = (ask) => `parley-draft ${base().slice(root.dataset.root.length - 1)} ${ask}`;

// ---- how a card was when it came: a form that is shown again with its errors has what was typed as its defaults
const firsts = new Map();
const initially = (field) => {
  if (isBox(field)) return field.defaultChecked;
  if (field.tagName !== 'SELECT') return field.defaultValue;
  const chosen = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
  return chosen?.value ?? '';
};
const current = (field) => (isBox(field) ? field.checked : field.value);
const isUnmet = (card) => !firsts.has(card.dataset.ask);
const meet = (card) => {
  if (!isUnmet(card)) return;
  firsts.set(card.dataset.ask, new Map(fields(card).map((field) => [field.id, initially(field)])));
};
const isTouched = (field, first) => current(field) !== (first?.get(field.id) ?? initially(field));

// ---- in words
const labelOf = (field) => {
  const [label] = field.labels ?? [];
  const named = field.dataset.label ?? $('.ttl2', label ?? field)?.textContent ?? label?.childNodes[0]?.textContent;
  return (named || field.name).trim();
};
const answerOf = (field) => {
  if (field.type === 'checkbox') return field.checked ? 'yes' : 'no';
  if (field.name.endsWith('#as')) return { out: 'not set', empty: '""', null: 'null' }[field.value] ?? '';
  if (field.tagName !== 'SELECT') return field.value;
  return [...field.selectedOptions].map((option) => option.text).join(', ');
};
/** What a person would want back: the one text they wrote, or each field with its label. */
const wordsIn = (card) => {
  const first = firsts.get(card.dataset.ask);
  const isMine = (field) =>
    !['as', 'by', 'tool'].includes(field.name) && isTouched(field, first) && (field.type !== 'radio' || field.checked);
  const mine = fields(card).filter(isMine);
  if (mine.length === 1 && mine[0].tagName === 'TEXTAREA') return mine[0].value;
  return mine.map((field) => `${labelOf(field)}: ${answerOf(field)}`).join('\n');
};

// ---- kept
/** The draft of an ask, or nothing. */
const draftOf = (ask) => {
  try {
    return JSON.parse(tab.get(draftKey(ask)));
  } catch {
    return null;
  }
};
const keepDraft = (card) => {
  const mine = fields(card).filter((field) => !field.name.startsWith('edit-') || field.value !== field.defaultValue);
  const values = mine.map((field) => [field.id, current(field)]);
  tab.set(draftKey(card.dataset.ask), JSON.stringify({ values, words: wordsIn(card) }));
};
const restoreDraft = (card) => {
  meet(card);
  for (const [id, value] of draftOf(card.dataset.ask)?.values ?? []) {
    const field = id && document.getElementById(id);
    // The form to edit a request is fetched when it is opened: what was typed in it must not be forgotten there.
    if (!field && id.includes('-edit-')) $('details.edit', card)?.setAttribute('open', '');
    if (!field || !card.contains(field)) continue;
    if (isBox(field)) field.checked = value;
    else field.value = value;
    if (isTouched(field)) field.closest('.how, .failing')?.setAttribute('open', '');
  }
  for (const field of $$('[data-f]', card)) sync(field);
};
const forgetDraft = (ask) => tab.remove(draftKey(ask));
/** The request of an ask was edited, and Parley keeps that: its fields are as they were when they came. */
const forgetEdits = (card) => {
  for (const field of $$('[name^=edit-]', card)) {
    field.value = field.defaultValue;
    firsts.get(card.dataset.ask)?.delete(field.id);
  }
  keepDraft(card);
};
/** What was typed into the request went to a model with it: its form is made of what is in force now. */
const renewEdits = (card) => {
  const fields = $('.edit-fields', card);
  if (!$('[name^=edit-]', fields)) return;
  forgetEdits(card);
  fields.closest('details').open = false;
  // a button is called action, too
  const url = $('form.in', card).getAttribute('action');
  htmx.ajax('GET', `${url.slice(0, url.lastIndexOf('/'))}?edit=1`, { target: fields, swap: 'innerHTML' });
};
/** Forget the drafts of asks that this session no longer shows. */
const pruneDrafts = () => {
  const start = draftKey('');
  for (const one of tab.keys()) {
    if (one.startsWith(start) && !document.getElementById(`ask-${one.slice(start.length)}`)) tab.remove(one);
  }
};

// ==== cards: an answered one becomes a line and joins the answered ones; one that ended under somebody's hands keeps what
// was typed and takes no more; the keyboard finds the next one

const LINGERS = 4000;
const SHRINKS = 160;
const MANY = 3;
const NEXT_COMES = 1200;

const cardOf = (ask, list = '') => $(`${list} #ask-${CSS.escape(ask)}`);
const isOver = (card) => ['answered', 'withdrawn', 'expired', 'lost'].includes(card.dataset.s);
const isWaiting = (card) => card.dataset.s === 'open';
/** Answered, and on its way, or held until the others of its round are answered. */
const isLeaving = (card) => ['held', 'sending'].includes(card.dataset.s);
const waiting = () =>
  $$(':is(#asks, .in-place) > .ask').filter((card) => isWaiting(card) && !$('[data-settled]', card));
const isIn = (card, list) => card.parentElement?.id === list;

// ---- an answer of this tab is under way: how tall its card was, and whether the keyboard was in it
const under = new Map();

/** The line of an ask that is over, in place of its card. */
const shrink = (card) => {
  // the page that has it draws what became of it
  if (card.closest('.in-place')) return;
  const { ask } = card.dataset;
  if (!under.has(ask)) under.set(ask, { height: card.offsetHeight, focus: card.contains(document.activeElement) });
  htmx.ajax('GET', `${base()}/asks/${ask}`, { target: `#ask-${CSS.escape(ask)}`, swap: 'outerHTML' });
};
/** A line came in place of a card: it shrinks to it. The keyboard goes on to the next ask if the answer was given there. */
const line = (card) => {
  const details = $('details', card);
  if (card.closest('.letter-list')) details.open = true;
  if (isIn(card, 'settled')) details.open = false;
  if (!isIn(card, 'asks')) return;
  details.open = false;
  const { height, focus, sent } = under.get(card.dataset.ask) ?? {};
  under.delete(card.dataset.ask);
  if (height && !matchMedia('(prefers-reduced-motion: reduce)').matches) {
    const shape = (from) => ({ height: `${from}px`, overflow: 'hidden' });
    card.animate([shape(height), shape(card.offsetHeight)], { duration: SHRINKS, easing: 'ease-out' });
  }
  if (focus && (document.activeElement === document.body || card.contains(document.activeElement))) {
    const open = $$('#asks > .ask').filter((one) => one === card || isWaiting(one));
    const at = open.indexOf(card);
    const after = sent && (open[at + 1] ?? open[at - 1]);
    if (after) goTo(after);
    else $('summary', card).focus({ preventScroll: true });
    if (sent && !after) expectNext(card);
  }
  oneOpen();
  if (isOver(card)) setTimeout(retire, LINGERS, card);
};

// ---- the next ask of the same call often comes a moment after the answer: the keyboard goes on to it, unless its owner
// has gone on to something else by then
let expected = null;
const expectNext = ({ dataset }) => {
  if (!dataset.call) return;
  expected = { call: dataset.call, until: performance.now() + NEXT_COMES, from: document.activeElement };
};
const comeNext = (card) => {
  const { call, until, from } = expected ?? {};
  if (!call || card.dataset.call !== call || performance.now() > until) return;
  expected = null;
  const here = document.activeElement;
  if (here === from || here === document.body) goTo(card);
};
for (const sign of ['pointerdown', 'keydown', 'wheel']) {
  const cancel = () => {
    expected = null;
  };
  addEventListener(sign, cancel, { capture: true, passive: true });
}
/** Of those that wait at least the oldest stands open. */
const oneOpen = () => {
  const open = waiting();
  if (open.length && !open.some((one) => $('details', one).open)) $('details', open[0]).open = true;
};
/** A line joins the answered ones; not while somebody reads it, and not unseen. */
const retire = (card) => {
  if (!card.isConnected || !isIn(card, 'asks')) return;
  const details = $('details', card);
  const wait = (target, sign) => target.addEventListener(sign, () => retire(card), { once: true });
  if (details.open) return wait(details, 'toggle');
  if (document.hidden) return wait(document, 'visibilitychange');
  const hadFocus = card.contains(document.activeElement);
  cardOf(card.dataset.ask, '#settled >')?.remove();
  $('#settled').prepend(card);
  if (!hadFocus) return;
  // Once the inbox has noticed that it is empty (room.js), which it does before this.
  queueMicrotask(() =>
    $$('#past > summary, #inbox-open')
      .find((one) => one.checkVisibility())
      ?.focus({ preventScroll: true }),
  );
};

// ---- what was typed and not sent: it stays readable below the open asks, until it is dismissed
/** A card with a form, whose ask is over: it says so and takes no more. */
const settle = (card) => {
  const state = $('[data-settled]', card);
  const word = state?.dataset.settled;
  const set = $('fieldset.plain-set', card);
  const hadFocus = card.contains(document.activeElement);
  if (set) set.disabled = word !== undefined;
  // The answers of a round have left: what was a line says now what became of it.
  if (!set && isLeaving(card) && word && word !== card.dataset.s && isIn(card, 'asks')) return shrink(card);
  if (!set || !word || word === 'sending') return;
  if (!isWaiting(card)) return offer(card);
  // The answer of this tab: the line comes with what the server replied.
  if (under.get(card.dataset.ask)?.sent) return;
  // What a model had written for an ask that was taken back stays too, and is grey.
  if (!wordsIn(card) && (word === 'answered' || !$('[data-draft]:not(:empty), .answer', card))) return shrink(card);
  card.dataset.s = word;
  card.removeAttribute('hx-morph-skip');
  const use = $('summary > .tag > use', card);
  use?.parentElement.setAttribute('class', word === 'answered' ? 'i ok' : 'i dim');
  use?.setAttribute('href', `${use.getAttribute('href').split('#')[0]}#${state.dataset.mark}`);
  write($('.kind', card), `${$('.kind', card).textContent}, ${state.dataset.word}`);
  const { at } = state.dataset;
  const left = $('summary > .left', card);
  left?.replaceChildren(at ? make('time', { datetime: at, text: at.slice(11, 19) }) : '');
  for (const bar of $$('progress.ttl', card)) bar.remove();
  offer(card);
  $('details', card).open = true;
  if (isIn(card, 'asks')) $('#kept').append(card);
  oneOpen();
  if (!hadFocus) return;
  // Whoever is typing types on: into nothing, not into a command of the page.
  const place = $('.ask-state', card);
  place.tabIndex = -1;
  place.focus();
};
const offer = (card) => {
  const hasForm = !!$('form.in', card);
  const text = hasForm ? wordsIn(card) : (draftOf(card.dataset.ask)?.words ?? '');
  const button = $('[data-copy-typed]', card);
  if (!button || !text) return;
  button.hidden = false;
  button.dataset.words = text;
  if (hasForm) return;
  $('[data-typed] pre', card).textContent = text;
  $('[data-typed]', card).hidden = false;
};
/** A line of which this tab has what was typed and not sent: it stands open until somebody dismisses it. */
const keep = (card) => {
  offer(card);
  const draft = draftOf(card.dataset.ask);
  if (!$('#kept') || !draft?.words || draft.away) return;
  $('#kept').append(card);
  $('details', card).open = true;
};
const putAway = async (card) => {
  const { ask } = card.dataset;
  const draft = draftOf(ask);
  if (draft) tab.set(draftKey(ask), JSON.stringify({ ...draft, away: true }));
  card.dataset.away = '1';
  card.remove();
  if ($('#settled')) await htmx.ajax('GET', `${base()}/asks/${ask}`, { target: '#settled', swap: 'afterbegin' });
};
const dismiss = async (cards) => {
  await Promise.all(cards.map(putAway));
  $$('#next-ask, #past > summary, #inbox-open, #inbox-title')
    .find((one) => one.checkVisibility())
    ?.focus();
};
// The whole list came anew, and an ask is no longer in it: it was settled meanwhile. What was typed in its card must
// not go with the card.
const rescue = (card) =>
  setTimeout(() => {
    const { ask } = card.dataset;
    if (!$('#asks') || card.dataset.away || cardOf(ask, ':is(#asks, #kept) >') || !draftOf(ask)?.words) return;
    const twin = cardOf(ask, '#settled >');
    if (twin) return keep(twin);
    const text = 'This was settled meanwhile. You had typed:';
    $('#kept').append(card);
    const over = { 'data-settled': 'settled', 'data-mark': 'over', 'data-word': 'over', 'data-at': '' };
    $('.ask-state', card).replaceChildren(make('p', { name: 'dim', text, ...over }));
  }, 150);

const count = () => {
  if (!$('#past')) return;
  // A list that came anew has those again that are kept here.
  for (const { dataset } of $$('#kept > .ask')) cardOf(dataset.ask, '#settled >')?.remove();
  const settled = $$('#settled > li');
  write($('#n-settled'), String(settled.length));
  write($('#strip-settled'), String(settled.length));
  const last = settled[0] && $('.left > time', settled[0]);
  const told = $('#last-settled');
  if ($('time', told)?.dateTime !== last?.dateTime)
    told.replaceChildren(...(last ? [', last ', last.cloneNode(true)] : []));
  $('#past').hidden = !settled.length;
};
const look = (node) => {
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  const card = node.closest('.ask');
  if (card && node.matches('[data-settled]')) return settle(card);
  if (card && node.matches('.edit-fields > *, .uses > *, .answer')) restoreDraft(card);
  withModels(node);
  for (const one of node.matches('.ask') ? [node] : $$('.ask', node)) {
    if ((isOver(one) || isLeaving(one)) && !$('form.in', one)) {
      if (isOver(one)) offer(one);
      line(one);
    }
    if (!isWaiting(one)) continue;
    const isNew = isUnmet(one);
    under.delete(one.dataset.ask);
    restoreDraft(one);
    if (!isNew) continue;
    tuck([one]);
    if (isIn(one, 'asks')) comeNext(one);
  }
};

// ---- of many asks one is open and the others wait folded: the one that somebody works on, else the oldest. On a narrow
// page, where the inbox stands above the page, of any number
const isNarrow = () => !!$('.app > .inbox') && matchMedia('(max-width: 56rem)').matches;
const tuck = (cards) => {
  const open = waiting();
  if (open.length <= MANY && !isNarrow()) return;
  const kept = open.find((one) => one.contains(document.activeElement)) ?? open[0];
  for (const card of open.length > MANY ? open : cards) {
    if (!isIn(card, 'asks')) continue;
    if (card !== kept && !(isNarrow() && draftOf(card.dataset.ask))) $('details', card).open = false;
  }
};
document.addEventListener(
  'toggle',
  ({ target }) => {
    const card = target.open && target.matches?.('#asks > .ask > details') && target.parentElement;
    if (!card || !isWaiting(card) || waiting().length <= MANY) return;
    for (const other of waiting()) if (other !== card) $('details', other).open = false;
    card.scrollIntoView({ block: 'nearest' });
  },
  true,
);

// ---- what unfolds at the end of the column is seen
document.addEventListener('htmx:after:swap', ({ target }) => {
  const place = target.closest?.('.make-rule > .place') ?? $('.make-rule > .place:has(.made)', target);
  if (place?.contains($('.made', place))) place.scrollIntoView({ block: 'nearest' });
});

// ---- somebody is at an ask: neither a rule nor a model answers it then. Said when they focus or type, and anew while
// they go on; not when it was the page that led the keyboard there
const CLAIMS = 20_000;
const claims = new Map();
let isLed = false;
const claim = (target) => {
  const form = !isLed && target.closest?.('.ask[data-s=open] form.in[action]');
  const { ask } = form ? form.closest('.ask').dataset : {};
  if (!ask || performance.now() - (claims.get(ask) ?? -CLAIMS) < CLAIMS) return;
  claims.set(ask, performance.now());
  // its buttons are called action too
  const to = form.getAttribute('action');
  // What cannot be said is said by the next letter; an ask that is over says so itself.
  fetch(`${to.slice(0, to.lastIndexOf('/'))}/touch`, { method: 'POST' }).catch(() => claims.delete(ask));
};
document.addEventListener('focusin', ({ target }) => claim(target));
document.addEventListener('input', ({ target }) => claim(target));

// ---- the next ask, by key or button
const goTo = (card) => {
  $('details', card).open = true;
  const controls = $$('.in :is(input:not([type=hidden], [name=as]), select, textarea, button:not(.by button))', card);
  isLed = true;
  (controls.find((control) => control.checkVisibility()) ?? $('summary', card)).focus();
  isLed = false;
  card.scrollIntoView({ block: 'nearest' });
};
const next = () => {
  const open = waiting();
  const now = open.findIndex((card) => card.contains(document.activeElement));
  if (open.length) goTo(open[(now + 1) % open.length]);
};

// ---- what models need comes with the first sampling
const withModels = (from) => {
  if ($('.flow', from)) import('./model.js');
};

// ---- from here on the page lives
withModels(document);
for (const card of $$('.ask')) {
  if (isWaiting(card)) restoreDraft(card);
  else if (isOver(card)) keep(card);
  if (isWaiting(card) && $('[data-settled]', card)) settle(card);
}
if ($('#asks')) pruneDrafts();
if (!location.hash.startsWith('#ask-')) tuck(waiting());
count();
for (const list of $$('#main, body > #inbox')) {
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
  if (card) keepDraft(card);
});
const isAnswer = (event) => String(event.detail?.ctx?.request?.action).endsWith('/answer');
document.addEventListener('htmx:before:request', (event) => {
  const card = event.target.closest?.('.ask');
  if (!card || !isAnswer(event)) return;
  under.set(card.dataset.ask, { sent: true, height: card.offsetHeight, focus: card.contains(document.activeElement) });
});
document.addEventListener('htmx:finally:request', (event) => {
  const card = event.target.closest?.('.ask');
  if (!card?.isConnected || !isAnswer(event)) return;
  // Refused or not heard of: whether it is over says the state that came meanwhile.
  under.delete(card.dataset.ask);
  if (isWaiting(card) && $('[data-settled]', card)) settle(card);
});
document.addEventListener('htmx:after:request', (event) => {
  const card = event.target.closest?.('.ask');
  const { ctx } = event.detail ?? {};
  if (!card || ![200, 204].includes(ctx?.response?.status)) return;
  const action = String(ctx.request?.action);
  // This tab has sent it: there is no draft any more. A request that was edited is kept by Parley itself.
  if (action.endsWith('/answer')) forgetDraft(card.dataset.ask);
  if (action.endsWith('/request')) forgetEdits(card);
  if (action.endsWith('/draft')) renewEdits(card);
});
const copyTyped = (button) => {
  // the neighbours stay where they are
  button.style.minWidth = `${button.offsetWidth}px`;
  return navigator.clipboard.writeText(button.dataset.words).then(
    () => write($('span', button), 'Copied'),
    () => write($('span', button), 'The browser does not allow copying'),
  );
};
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at('#next-ask')) return next();
  if (at('#waiting') && !event.ctrlKey && !event.metaKey && $('#inbox')?.checkVisibility()) return next();
  if (at('[data-put-away]')) return dismiss([at('.ask')]);
  if (at('#dismiss-all')) return dismiss($$('#kept > .ask'));
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
  if (event.ctrlKey || event.metaKey) return $$('button.go', card).find((button) => button.checkVisibility());
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
  if (event.target.matches?.('input:not([type=checkbox], [type=radio]), textarea, select, .ask-state')) return;
  event.preventDefault();
  next();
});
