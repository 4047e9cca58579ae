// The one stream of a tab, and the gaps that hx-sse 4.0.0 leaves open: the first connect, the last word, the pace.
import { backOff, Pace } from './decide.js';
import { $, make, root, write } from './dom.js';

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
export const open = () => {
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
    if (!over && !parked && !isOpen()) open();
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
  open();
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
