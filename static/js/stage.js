// What a presenter needs on the stage: the size of the type, hidden names, a clock, and one key that begins again.
import { $ } from './page.js';

const root = document.documentElement;
const SIZES = ['s', 'm', 'l', 'xl'];
const kept = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};
const keep = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    /* storage is off: it lasts as long as the page */
  }
};

const size = (by) => {
  const at = SIZES.indexOf(root.dataset.stage ?? 'm');
  root.dataset.stage = SIZES[Math.min(Math.max(at + by, 0), SIZES.length - 1)];
  keep('parley-stage', root.dataset.stage);
};
const names = (hidden) => {
  root.classList.toggle('nameless', hidden);
  $('#hide-names').setAttribute('aria-pressed', String(hidden));
  keep('parley-names', hidden ? 'hidden' : '');
};

if (SIZES.includes(kept('parley-stage'))) root.dataset.stage = kept('parley-stage');
names(kept('parley-names') === 'hidden');
$('#smaller').addEventListener('click', () => size(-1));
$('#larger').addEventListener('click', () => size(1));
$('#hide-names').addEventListener('click', () => names(!root.classList.contains('nameless')));

// The button goes through three; the key is for who needs the other one at once.
const isDark = () =>
  (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : '')) === 'dark';
const flip = () => {
  const before = isDark();
  for (let n = 0; n < 2 && isDark() === before; n++) $('#theme').click();
};

const KEYS = {
  '-': () => size(-1),
  '+': () => size(1),
  // the same key, without Shift
  '=': () => size(1),
  h: () => names(!root.classList.contains('nameless')),
  d: flip,
  r: () => $('#reset')?.requestSubmit(),
};
// A box that was ticked keeps the focus, and is nothing to type in.
const WRITTEN = 'input:not([type="checkbox"], [type="radio"]), select, textarea, [contenteditable]';
document.addEventListener('keydown', (event) => {
  const act = KEYS[event.key.toLowerCase()];
  // A key that is held down begins again once.
  if (event.target.closest(WRITTEN) || (event.repeat && act !== KEYS['+'] && act !== KEYS['-'])) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (act) {
    event.preventDefault();
    act();
  }
});

// Since the stage of this session was opened here; loading the page again goes on counting.
const place = `parley-began ${location.pathname}`;
let began = Date.now();
try {
  began = Number(sessionStorage.getItem(place)) || began;
  sessionStorage.setItem(place, String(began));
} catch {
  /* storage is off: it counts from here */
}
const tick = () => {
  const minutes = Math.floor((Date.now() - began) / 60_000);
  const time = new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  $('#stage-clock').textContent = `${time}, ${minutes} min`;
};
setInterval(tick, 5000);
tick();
