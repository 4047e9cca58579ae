// A button is disabled while its request is under way, and a form may come back anew: a keyboard must not lose its
// place by that.
import { $ } from './dom.js';

const LASTS = 5000;
let place = null;

const remember = (event) => {
  const element = document.activeElement;
  if (!element || element === document.body || !event.target.contains?.(element)) return;
  place = { element, id: element.id, card: element.closest('.ask')?.id, until: performance.now() + LASTS };
};
const giveBack = () =>
  setTimeout(() => {
    if (!place || performance.now() > place.until || document.activeElement !== document.body) return;
    const { element, id, card } = place;
    const twin = element.isConnected ? element : id && document.getElementById(id);
    const usable = twin && !twin.matches(':disabled') && twin.checkVisibility();
    const next = usable ? twin : card && $(`#${CSS.escape(card)} summary`);
    if (!next) return;
    // A card may be drawn anew once more, when its answer has left.
    place.element = next;
    next.focus({ preventScroll: true });
  });

document.addEventListener('submit', remember, true);
document.addEventListener('click', remember, true);
document.addEventListener('htmx:after:swap', giveBack);
document.addEventListener('htmx:finally:request', giveBack);
const forget = () => {
  place = null;
};
document.addEventListener('pointerdown', forget, true);
document.addEventListener('focusin', (event) => {
  if (event.target !== place?.element) forget();
});
