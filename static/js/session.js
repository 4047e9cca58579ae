// What surrounds every page of a session: the palette and the list of keys, and the one stream that keeps the page live.
import './asks.js';
import './calls.js';
import './log.js';
import { backOff, Pace, ranked } from './decide.js';
import { $, base, make, modified, root, typedInto, write } from './page.js';

// ==== the command palette and the list of keys

const MOST = 200;
const SVG = 'http://www.w3.org/2000/svg';
const palette = $('#palette');
const help = $('#help');
const box = $('#palette-box');
const list = $('#palette-list');
let items = [];
let shown = [];
let at = 0;
let back = null;
let loads = 0;

// JSON has the addresses that scripts use; this page lives below a path of its own.
const below = (href) => root.dataset.root + href.slice(1);
const say = (words) => write($('#palette-say'), words);

const icon = (name) => {
  const [svg, use] = [document.createElementNS(SVG, 'svg'), document.createElementNS(SVG, 'use')];
  svg.setAttribute('class', 'i');
  svg.setAttribute('aria-hidden', 'true');
  use.setAttribute('href', `${palette.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
};
const option = (item, index) =>
  make(
    'div',
    { id: `palette-${index}`, role: 'option', 'aria-selected': 'false', 'data-index': index },
    icon(item.icon),
    make(item.kind === 'tool' || item.kind === 'call' ? 'code' : 'span', { text: item.label }),
    make('span', { name: 'dim s', text: item.detail }),
    make('span', { name: 'k', text: item.kind }),
  );
const mark = (index) => {
  if (!shown.length) return box.removeAttribute('aria-activedescendant');
  at = (index + shown.length) % shown.length;
  for (const one of list.children) one.setAttribute('aria-selected', String(+one.dataset.index === at));
  const current = $(`#palette-${at}`);
  box.setAttribute('aria-activedescendant', current.id);
  current.scrollIntoView({ block: 'nearest' });
};
const counted = (cut) => {
  if (!shown.length) return 'Nothing of that name.';
  if (cut > 0) return `${shown.length} shown, ${cut} more: type on to find them.`;
  return `${shown.length} ${shown.length === 1 ? 'place' : 'places'}`;
};
const draw = () => {
  const matching = ranked(items, box.value);
  shown = matching.slice(0, MOST);
  list.replaceChildren(...shown.map(option));
  say(counted(matching.length - shown.length));
  mark(0);
};
const go = (index, elsewhere) => {
  const item = shown[index];
  if (!item) return;
  if (elsewhere) {
    window.open(below(item.href), '_blank', 'noopener');
    return;
  }
  palette.close();
  location.assign(below(item.href));
};

// ---- open and close; the focus goes back to where it was
const show = (dialog) => {
  back = document.activeElement;
  dialog.showModal();
};
const openPalette = async () => {
  if (palette.open) return;
  help.close();
  items = [];
  box.value = '';
  list.replaceChildren();
  show(palette);
  box.focus();
  say('Looking…');
  const mine = ++loads;
  try {
    const answer = await fetch(`${base()}/palette`, { headers: { accept: 'application/json' } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = (await answer.json()).items;
    if (mine !== loads) return;
    items = found;
    draw();
  } catch {
    if (mine === loads) say('Parley could not be reached.');
  }
};
const beside = ({ clientX: x, clientY: y }, { top, bottom, left, right }) =>
  y < top || y > bottom || x < left || x > right;

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
const onBoxKey = (event) => {
  const step = STEPS[event.key];
  if (step) {
    event.preventDefault();
    mark(Math.abs(step) === 1 ? at + step : Math.max(0, Math.min(shown.length - 1, at + step)));
  }
  if (event.key === 'Enter' && !event.isComposing) {
    event.preventDefault();
    go(at, event.ctrlKey || event.metaKey);
  }
};
// First of all listeners, on the window, so that no other key of the page acts behind an open dialog.
const onKey = (event) => {
  const isCall = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (isCall && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    if (palette.open) palette.close();
    else openPalette();
  } else if (palette.open || help.open) {
    if (!event.target.closest?.('dialog')) event.stopPropagation();
    else if (['Escape', 'n', '/'].includes(event.key)) event.stopImmediatePropagation();
  } else if (event.key === '?' && !modified(event) && !typedInto(event.target)) {
    event.preventDefault();
    show(help);
  }
};

if (palette) {
  for (const dialog of [palette, help]) {
    dialog.addEventListener('close', () => {
      if (back?.isConnected) back.focus();
      back = null;
    });
    // A click on the ground beside it: the event's target is the dialog itself only there.
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog && beside(event, dialog.getBoundingClientRect())) dialog.close();
    });
  }
  box.addEventListener('input', draw);
  box.addEventListener('keydown', onBoxKey);
  list.addEventListener('click', (event) => {
    const one = event.target.closest('[role=option]');
    if (one) go(+one.dataset.index, event.ctrlKey || event.metaKey);
  });
  $('#find')?.addEventListener('click', openPalette);
  addEventListener('keydown', onKey, true);
}

// ==== the one stream of a tab, and the gaps that hx-sse 4.0.0 leaves open: the first connect, the last word, the pace

const stream = $('#stream');
const pace = new Pace();
let lastId = '';
let parked = false;
let over = false;
let tries = 0;

const pill = (state, text) => {
  const element = $('#pill');
  if (!element) return;
  if (element.dataset.state !== state) element.dataset.state = state;
  write(element, text);
};
const isOpen = () => !!stream._htmx?.sse;
const address = () => {
  const url = new URL(stream.getAttribute('hx-sse:connect'), location.href);
  // A connection made by hand has no Last-Event-ID, so the address carries it.
  if (lastId) url.searchParams.set('since', lastId);
  return url.pathname + url.search;
};
// By hand: htmx starts before a slow hx-sse script has registered, and then never looks at the element again.
const connect = () => {
  parked = false;
  $('#fetches').replaceChildren();
  htmx.ajax('GET', address(), { source: stream });
};

// ---- how it goes
document.addEventListener('htmx:sse:after:connection', () => {
  tries = 0;
  pill('live', 'live');
});
document.addEventListener('htmx:sse:before:connection', (event) => {
  if (event.detail.connection.attempt) pill('wait', 'reconnecting');
});
const refused = (status) => {
  if (status === 401) stop('out');
  else if (status === 404) stop('closed');
  else pill('off', 'reconnecting');
};
document.addEventListener('htmx:sse:error', (event) => refused(event.detail.status));
// The extension does not retry the first connect.
const retryFirst = (event) => {
  if (event.target !== stream || over || parked || isOpen()) return;
  refused(event.detail?.ctx?.response?.status);
  if (over) return;
  setTimeout(() => {
    if (!over && !parked && !isOpen()) connect();
  }, backOff(tries++));
};
document.addEventListener('htmx:error', retryFirst);
document.addEventListener('htmx:response:error', retryFirst);
document.addEventListener('htmx:sse:after:message', () => pace.swapped(performance.now()));
document.addEventListener('htmx:sse:before:message', (event) => {
  const { message, waitUntil } = event.detail;
  lastId = message.id || lastId;
  if (!pace.waits(performance.now(), message.data.length)) return;
  const frame = new Promise((done) => {
    const late = setTimeout(done, 100); // a hidden tab has no frames
    requestAnimationFrame(() => {
      clearTimeout(late);
      setTimeout(done);
    });
  });
  waitUntil.call(event.detail, frame);
});

// ---- how it ends
// Not `hx-sse:close`: that aborts a fetch that is still being read, and each time the console shows an error.
const noReconnect = () => {
  const sse = stream._htmx?.sse;
  if (sse) sse.config.reconnect = false;
};
// What ended this page: a word for the pill, and a strip with what to do next.
const ENDS = {
  closed: {
    word: 'closed',
    head: 'This session is closed.',
    rest: 'What is shown is what was last known. What you type here goes nowhere.',
    way: 'To the first page',
  },
  stopped: {
    word: 'stopped',
    head: 'Parley has stopped.',
    rest: 'This session ended with it. What is shown stays until you leave the page.',
  },
  again: {
    word: 'started again',
    head: 'Parley was started again.',
    rest: 'This session ended with the old one. Open the address that the terminal printed; what is shown stays until you leave the page.',
    way: 'To the first page',
  },
  out: {
    word: 'signed out',
    head: 'You are signed out.',
    rest: 'Open the address that the terminal printed, then come back to this page.',
    way: 'Try again',
  },
};
const stop = (why) => {
  over = true;
  noReconnect();
  const { word, head, rest, way } = ENDS[why];
  pill('off', word);
  $('.ended')?.remove();
  const strip = make('div', { name: 'ended', 'data-why': why, role: 'alert' });
  strip.append(make('p', {}, make('b', { text: head }), ` ${rest}`));
  if (way) strip.append(make('a', { name: 'btn', text: way, href: why === 'out' ? location.href : root.dataset.root }));
  $('.top').after(strip);
  if (why === 'stopped') setTimeout(lookAgain, 2000);
};
// Parley has stopped: this tab looks now and then whether it is back, and says so.
const lookAgain = async () => {
  const isBack = !document.hidden && (await fetch('/healthz').catch(() => null))?.ok;
  if (isBack) stop('again');
  else setTimeout(lookAgain, 4000);
};
// The last word of a stream: too many tabs, the session is closed, or Parley stops.
document.addEventListener('bye', (event) => {
  const why = event.detail?.data;
  if (why === 'closed') return stop('closed');
  if (why === 'shutdown') return stop('stopped');
  parked = true;
  noReconnect();
  pill('wait', 'paused: many tabs are open');
  $('#fetches').replaceChildren($('#parked').content.cloneNode(true));
  htmx.process($('#fetches'));
});
const resume = () => {
  if (!parked || over || document.hidden || isOpen()) return;
  pill('wait', 'reconnecting');
  connect();
};
addEventListener('focus', resume);
for (const sign of ['visibilitychange', 'pointerdown', 'keydown']) document.addEventListener(sign, resume);

// ---- the number that waits, in the title; a parked tab asks for it, because no stream brings it
const title = document.title;
const setTitle = (waiting) => {
  document.title = waiting ? `(${waiting}) ${title}` : title;
};
const count = () => setTitle(+($('#waiting')?.dataset.n ?? 0));
document.addEventListener('htmx:after:swap', () => {
  const asked = $('#fetches [data-count]')?.textContent;
  if (asked) setTitle(+asked);
});
count();
new MutationObserver(count).observe($('.top'), {
  subtree: true,
  childList: true,
  attributes: true,
  attributeFilter: ['data-n'],
});

// ==== from here on the page lives

$('.rail nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
connect();
