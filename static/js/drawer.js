// The height of the drawer: by pointer, or by the arrows on the separator. The tab remembers.
import { $, tab } from './dom.js';

const KEY = 'parley-drawer';
const LEAST = 96;
const MOST = 0.75;
const STEPS = { ArrowUp: 24, ArrowDown: -24, PageUp: 120, PageDown: -120 };
const drawer = $('#drawer');
const grip = $('#grip');

const size = (pixels) => {
  const most = innerHeight * MOST;
  const height = Math.round(Math.max(LEAST, Math.min(most, pixels)));
  drawer.style.setProperty('--drawer', `${height}px`);
  drawer.toggleAttribute('data-sized', true);
  grip.setAttribute('aria-valuenow', height);
  grip.setAttribute('aria-valuemax', Math.round(most));
  return height;
};
const resize = (pixels) => tab.set(KEY, size(pixels));

if (grip && drawer) {
  const kept = +tab.get(KEY);
  if (kept) size(kept);
  else grip.setAttribute('aria-valuenow', Math.round(drawer.offsetHeight));
  grip.addEventListener('pointerdown', (event) => {
    if (drawer.hasAttribute('data-folded')) return;
    grip.setPointerCapture(event.pointerId);
    const [from, height] = [event.clientY, drawer.offsetHeight];
    const move = (moved) => resize(height + from - moved.clientY);
    grip.addEventListener('pointermove', move);
    grip.addEventListener('lostpointercapture', () => grip.removeEventListener('pointermove', move), { once: true });
  });
  grip.addEventListener('keydown', (event) => {
    const ends = { Home: LEAST, End: innerHeight };
    const to = ends[event.key] ?? (event.key in STEPS && drawer.offsetHeight + STEPS[event.key]);
    if (!to) return;
    event.preventDefault();
    resize(to);
  });
}
