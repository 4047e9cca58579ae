// What surrounds every page of a session: the one stream that keeps the page live, and what the keyboard reaches from
// everywhere. The palette behind Ctrl-K comes when it is first opened.
import './alerts.js';
import './clocks.js';
import './log.js';
import './message.js';
import './room.js';
import { backOff, Pace } from './decide.js';
import { home, pill, showEnd, whatEnded } from './ended.js';
import { $, $$, base, modified, tab, typedInto, write } from './page.js';

// ==== the palette and the list of keys: opened here, so that nothing that is typed gets lost; what is in the palette
// palette.js knows

const palette = $('#palette');
const help = $('#help');
let back = null;

// ---- open and close; the focus goes back to where it was
const show = (dialog) => {
  back = document.activeElement;
  dialog.showModal();
};
const openPalette = async () => {
  if (palette.open) return;
  help.close();
  $('#palette-box').value = '';
  $('#palette-list').replaceChildren();
  show(palette);
  $('#palette-box').focus();
  write($('#palette-say'), 'Looking…');
  const found = await import('./palette.js').catch(() => null);
  if (found) found.look();
  else write($('#palette-say'), 'Parley could not be reached.');
};
const beside = ({ clientX: x, clientY: y }, { top, bottom, left, right }) =>
  y < top || y > bottom || x < left || x > right;

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
  $('#find')?.addEventListener('click', openPalette);
  $('#keys')?.addEventListener('click', () => show(help));
  addEventListener('keydown', onKey, true);
}

// Whoever comes by the palette has the keyboard: the first field of the page is theirs.
const JUMPED = 'parley-jumped';
if (tab.get(JUMPED)) {
  tab.remove(JUMPED);
  const first = $$('#main form :is(input:not([type=hidden]), textarea, select):not(:disabled)').find((field) =>
    field.checkVisibility(),
  );
  first?.focus();
}

// ==== the one stream of a tab, and the gaps that hx-sse 4.0.0 leaves open: the first connect, the last word, the pace

const stream = $('#stream');
const pace = new Pace();
let lastId = '';
let parked = false;
let over = false;
let asks = null;
let tries = 0;

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
  pill('live', 'up to date');
});
document.addEventListener('htmx:sse:before:connection', (event) => {
  if (event.detail.connection.attempt) pill('wait', 'reconnecting');
});
const refused = (status) => {
  if (status === 401) stop('out');
  else if (status === 404) missing();
  else pill('off', 'reconnecting');
};
document.addEventListener('htmx:sse:error', (event) => refused(event.detail.status));
// What is refused because nobody is signed in any more says so until somebody acts.
document.addEventListener('htmx:response:error', (event) => {
  if (event.detail?.ctx?.response?.status === 401 && !over) stop('out');
});
// A word only when it takes long.
setTimeout(() => {
  if ($('#pill')?.dataset.state === 'wait' && !$('#pill').textContent) pill('wait', 'connecting');
}, 2000);
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
  // The first ask of a page waits for what its card needs: nothing that is typed into it may be missed.
  if (!asks && message.data.includes('data-ask=')) {
    asks = import('./asks.js').catch(() => null);
    waitUntil.call(event.detail, asks);
  }
  if (!pace.waits(performance.now(), message.data.length)) return;
  const frame = new Promise((done) => {
    // a hidden tab has no frames
    const late = setTimeout(done, 100);
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
const stop = (why, ...ways) => {
  over = true;
  noReconnect();
  showEnd(why, ...ways);
  if (why === 'stopped') setTimeout(lookAgain, 2000);
};
// Signed in again, in another tab: this one goes on, with what was typed in it.
const comeBack = async () => {
  if (document.hidden || $('.ended')?.dataset.why !== 'out') return;
  if (!(await fetch(`${base()}/inbox?count=1`).catch(() => null))?.ok) return;
  $('.ended')?.remove();
  over = false;
  const sse = stream._htmx?.sse;
  if (!sse) return connect();
  sse.config.reconnect = true;
  pill('live', 'up to date');
};
addEventListener('focus', comeBack);
document.addEventListener('visibilitychange', comeBack);
// Nobody knows this session any more: it was closed, or Parley was started again.
const missing = async () => {
  over = true;
  noReconnect();
  stop(...(await whatEnded()));
};
// Parley has stopped: this tab looks now and then whether it is back, and says so.
const lookAgain = async () => {
  const isBack = !document.hidden && (await fetch('/healthz').catch(() => null))?.ok;
  if (isBack) missing();
  else setTimeout(lookAgain, 4000);
};
// The last word of a stream: too many tabs, the session is closed, its browser is signed out, or Parley stops.
document.addEventListener('bye', (event) => {
  const why = event.detail?.data;
  if (why === 'closed') return missing();
  if (why === 'signed-out') return stop('out');
  if (why === 'revoked') return stop('revoked', home());
  // Rights: the page offers something else now. Lost: another Parley answers for the one that held the session, and its
  // page says what was recorded and how to go on.
  if (why === 'rights' || why === 'lost') return location.reload();
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

// ---- a first connection that fails while somebody watches leads back to the form. One that failed long ago is looked at
const leads = () => {
  const { home, ago } = $('#first')?.dataset ?? {};
  if (home && ago < 2) location.replace(home);
};
leads();
document.addEventListener('htmx:after:swap', leads);

// ==== what only some pages have comes with it: the keys of a tree when somebody opens one or goes to it

const onTree = ({ target }) => {
  if (target.closest?.('.json') || (target.open && $('.json', target))) import('./results.js');
};
for (const sign of ['toggle', 'focusin']) document.addEventListener(sign, onTree, true);

// ==== from here on the page lives

for (const current of $$('.rail nav [aria-current]')) current.scrollIntoView({ block: 'nearest', inline: 'center' });
connect();
