// A session of a team: following its owner from page to page, and asks that somebody else has in hand.
import { $, $$, base, tab, write } from './page.js';

// ==== following: the stream says where the owner is, by the address on `#here`; this tab goes there. It ends by a click,
// and by any step of one's own: a page that this tab did not go to by following is one that somebody chose

const KEY = 'parley-follow';
const place = () => $('#here')?.dataset.path ?? '';
const at = () => location.pathname + location.search;
const told = () => {
  const [whose, path] = (tab.get(KEY) ?? '').split('\n');
  return whose === base() ? path : null;
};
let follows = false;

const say = (on) => {
  const to = $('#here')?.dataset.follow;
  if (to) fetch(to, { method: 'POST', body: new URLSearchParams(on ? { on: '1' } : {}) }).catch(() => null);
};
const stop = () => {
  follows = false;
  tab.remove(KEY);
  say(false);
};
const isBusy = () => !!document.activeElement?.closest?.('.ask form.in');
/** Go where the owner is; not away from an answer that is being typed. */
const go = () => {
  const path = place();
  if (!follows || !path || path === at() || isBusy()) return;
  tab.set(KEY, `${base()}\n${path}`);
  location.assign(path);
};
const show = () => {
  const button = $('#follow-owner');
  if (!button || button.getAttribute('aria-pressed') === String(follows)) return;
  button.setAttribute('aria-pressed', String(follows));
  write($('span', button), `${follows ? 'Following' : 'Follow'} ${button.dataset.name}`);
};
const look = () => {
  show();
  go();
};
document.addEventListener('click', (event) => {
  if (!event.target.closest?.('#follow-owner')) return;
  if (follows) stop();
  else {
    follows = true;
    tab.set(KEY, `${base()}\n${at()}`);
    say(true);
  }
  look();
});
document.addEventListener('focusout', () => setTimeout(go));

// ==== asks in other hands: their fields wait, with what was typed in them, until they are free or taken over

const hold = () => {
  for (const card of $$('.ask[data-s=open]')) {
    const set = $('fieldset.plain-set', card);
    const held = !!$('[data-settled], [data-claim=other], [data-claim=watching]', card);
    if (set && set.disabled !== held) set.disabled = held;
  }
};

// ==== from here on the page lives

if (told() === at()) {
  follows = true;
  say(true);
} else if (told() !== null) stop();
look();
hold();
for (const part of $$('.top, #main, body > #inbox')) {
  new MutationObserver(() => {
    look();
    hold();
  }).observe(part, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-path', 'data-s'] });
}
