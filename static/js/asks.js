// Asks in the page: their cards, what was typed into them, the alert for a new one, and the time that is left.
import { clock, left, SOON, since } from './decide.js';
import { $, $$, base, browser, make, modified, root, tab, write } from './page.js';

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
const labelOf = (field) => (field.labels?.[0]?.childNodes[0]?.textContent || field.name).trim();
const answerOf = (field) => {
  if (field.type === 'checkbox') return field.checked ? 'yes' : 'no';
  if (field.tagName !== 'SELECT') return field.value;
  return [...field.selectedOptions].map((option) => option.text).join(', ');
};
/** What a person would want back: the one text they wrote, or each field with its label. */
const wordsIn = (card) => {
  const first = firsts.get(card.dataset.ask);
  const mine = fields(card).filter((field) => isTouched(field, first) && (field.type !== 'radio' || field.checked));
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
  }
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
/** Forget the drafts of asks that this session no longer shows. */
const pruneDrafts = () => {
  const start = draftKey('');
  for (const one of tab.keys()) {
    if (one.startsWith(start) && !document.getElementById(`ask-${one.slice(start.length)}`)) tab.remove(one);
  }
};

// ==== cards: what was typed stays, a settled card says so and takes no more, and the keyboard finds the next one

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
  const text = hasForm ? wordsIn(card) : (draftOf(card.dataset.ask)?.words ?? '');
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
  if (card && node.matches('.edit-fields > *')) return restoreDraft(card);
  for (const one of node.matches('.ask') ? [node] : $$('.ask', node)) {
    if (one.dataset.s !== 'open') {
      offer(one);
      continue;
    }
    const isNew = isUnmet(one);
    restoreDraft(one);
    if (isNew) tuck([one]);
  }
};
// The whole list came anew, and an ask is no longer in it: it was settled meanwhile. What was typed in its card must
// not go with the card.
const rescue = (card) =>
  setTimeout(() => {
    const list = $('#asks');
    const { ask } = card.dataset;
    if (!list || card.dataset.away || cardOf(ask, '#asks') || !draftOf(ask)?.words) return;
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
    if (!isFirst && !draftOf(card.dataset.ask) && !card.contains(document.activeElement)) {
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
  if (card.dataset.s === 'open') restoreDraft(card);
  else offer(card);
}
if ($('#asks')) pruneDrafts();
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
  if (card) keepDraft(card);
});
document.addEventListener('htmx:after:request', (event) => {
  const card = event.target.closest?.('.ask');
  const { ctx } = event.detail ?? {};
  if (!card || ctx?.response?.status !== 200) return;
  const action = String(ctx.request?.action);
  // This tab has sent it: there is no draft any more. A request that was edited is kept by Parley itself.
  if (action.endsWith('/answer')) forgetDraft(card.dataset.ask);
  if (action.endsWith('/request')) forgetEdits(card);
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

// ==== a sound and a notification of the desktop: one switch, off by default, remembered in this browser

const ALERTS = 'parley-alerts';
const SAID = 'parley-alerted';
const TONES = [
  { pitch: 660, after: 0 },
  { pitch: 880, after: 0.14 },
];
const TOGETHER = 1500;
let isOn = browser.get(ALERTS) === 'on';
let audio = null;

// Two short tones, made here: no file, nothing to fetch.
const sound = () => {
  try {
    audio ??= new AudioContext();
    if (audio.state === 'suspended') audio.resume();
    for (const { pitch, after } of TONES) {
      const tone = audio.createOscillator();
      const loud = audio.createGain();
      const at = audio.currentTime + after;
      tone.frequency.value = pitch;
      loud.gain.setValueAtTime(0.0001, at);
      loud.gain.exponentialRampToValueAtTime(0.12, at + 0.02);
      loud.gain.exponentialRampToValueAtTime(0.0001, at + 0.22);
      tone.connect(loud).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.25);
    }
  } catch {
    // no sound here
  }
};
const permission = () => ('Notification' in window ? Notification.permission : 'none');
const notify = (card) => {
  if (permission() !== 'granted' || document.visibilityState === 'visible') return;
  const kind = $('.kind', card)?.textContent || 'An ask';
  const body = $('.gist', card)?.textContent.slice(0, 200) || '';
  try {
    const tag = `parley ${base().split('/').pop()} ${card.id}`;
    const note = new Notification(`${kind}: the server asks`, { body, tag });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  } catch {
    // not from a page, on some phones
  }
};
const showSwitch = () => {
  const button = $('#alerts');
  if (!button) return;
  button.setAttribute('aria-pressed', String(isOn));
  button.title =
    isOn && permission() === 'denied'
      ? 'Sound only: this browser refuses notifications for this page'
      : 'A sound and a notification when the server asks';
  write($('span', button), isOn ? 'Alerts on' : 'Alerts off');
};

document.addEventListener('click', async (event) => {
  if (!event.target.closest?.('#alerts')) return;
  isOn = !isOn;
  browser.set(ALERTS, isOn ? 'on' : 'off');
  showSwitch();
  if (!isOn) return;
  sound();
  if (permission() !== 'default') return;
  await Notification.requestPermission().catch(() => 'denied');
  showSwitch();
});
addEventListener('storage', (event) => {
  if (event.key !== ALERTS) return;
  isOn = event.newValue === 'on';
  showSwitch();
});
showSwitch();
const asks = $('#asks');
if (asks) {
  const known = new Set([...asks.children].map((card) => card.id));
  new MutationObserver(() => {
    const fresh = [...asks.children].filter((card) => card.dataset.s === 'open' && !known.has(card.id));
    for (const card of fresh) known.add(card.id);
    if (!isOn || !fresh.length) return;
    fresh.slice(-3).forEach(notify);
    // Several tabs and windows show the same ask: one of them makes the sound.
    if (Date.now() - +(browser.get(SAID) ?? 0) < TOGETHER) return;
    browser.set(SAID, String(Date.now()));
    document.dispatchEvent(new CustomEvent('parley:alerted'));
    sound();
  }).observe(asks, { childList: true });
}

// ==== count-downs and running times: the server says a moment once, the tab counts

const tick = () => {
  const now = Date.now();
  for (const element of $$('time[data-deadline]')) {
    const seconds = Math.ceil(left(element.dataset.deadline, now));
    write(element, seconds ? `${clock(seconds)} ${element.dataset.after}` : 'time is up');
    element.parentElement.classList.toggle('soon', seconds < SOON);
  }
  for (const element of $$('time[data-since]')) write(element, `${since(element.dataset.since, now)} s`);
  for (const bar of $$('progress[data-deadline]')) {
    const seconds = left(bar.dataset.deadline, now);
    bar.value = Math.min(seconds, bar.max);
    bar.classList.toggle('soon', seconds < SOON);
  }
};

setInterval(tick, 500);
tick();
new MutationObserver(tick).observe($('#main'), { childList: true, subtree: true });
