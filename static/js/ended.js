// How a page of a session ends: the pill, and the strip that says why and what can be done now.
import { $, $$, base, make, root, write } from './page.js';

/** The word at the top that says whether this tab hears of changes. */
export const pill = (state, text) => {
  const element = $('#pill');
  if (!element) return;
  if (element.dataset.state !== state) element.dataset.state = state;
  write(element, text);
};

// What ended this page: a word for the pill, and a sentence or two.
const ENDS = {
  closed: {
    word: 'closed',
    head: 'This session is closed.',
    rest: 'What is shown is what was last known. What you type here goes nowhere.',
  },
  stopped: {
    word: 'stopped',
    head: 'Parley has stopped.',
    rest: 'This session ended with it. What is shown stays until you leave the page.',
  },
  again: {
    word: 'restarted',
    head: 'Parley was restarted.',
    rest: 'This session ended with the old one. What is shown stays until you leave the page.',
  },
  revoked: {
    word: 'not shared',
    head: 'This is no longer shared with you.',
    rest: 'Nothing is sent from here.',
  },
  out: {
    word: 'signed out',
    head: 'You are signed out.',
    rest: 'Nothing is sent from here. Open the address that the terminal printed, then come back: this page goes on.',
  },
};

const link = (text, href) => make('a', { name: 'btn', text, href });
/** The way to the first page. */
export const home = () => link('Home', root.dataset.root);
/** A button that posts these fields and goes on to another page. */
const post = (text, action, fields = {}) =>
  make(
    'form',
    { method: 'post', action },
    ...Object.entries(fields).map(([name, value]) => Object.assign(make('input', { type: 'hidden', value }), { name })),
    make('button', { name: 'btn go', text }),
  );

// ---- closing can be taken back for a while: the button counts, and goes when it is too late
const undo = (seconds) => {
  const form = post('Undo', `${base()}/reopen`);
  const until = Date.now() + seconds * 1000;
  const count = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    if (left <= 0) return form.remove();
    $('button', form).textContent = `Undo (${left} s)`;
    setTimeout(count, 500);
  };
  count();
  return form;
};

const AGAIN = 'Connect to the same server again';

// ---- the same server once more, when Parley still knows it
const sameServer = (targets) => {
  const { target, era } = $('#stream').dataset;
  const known = targets.find((one) => one.key === target);
  const fields = known ? { recent: known.id } : { transport: 'demo', 'option.era': era };
  if (!known && target !== 'demo') return [];
  return [post(AGAIN, `${root.dataset.root}s`, fields)];
};

/** Why nobody knows this session any more, and what can be done: the arguments of `showEnd`. */
export const whatEnded = async () => {
  try {
    const answer = await fetch(root.dataset.root, { headers: { accept: 'application/json' } });
    if (answer.status === 401) return ['out'];
    const { run, closed = [], targets = [] } = await answer.json();
    if (run !== $('#stream').dataset.run) return ['again', ...sameServer(targets), home()];
    const mine = closed.find((one) => base().endsWith(`/${one.id}`));
    return mine ? ['closed', undo(mine.reopen_seconds), home()] : ['closed', home()];
  } catch {
    return ['stopped'];
  }
};

/** Nothing leaves such a page any more: what would send is disabled and says why. Where a call was sent from stands what
    can be done instead, for the strip may be out of sight; its button belongs to the form of the strip. */
const freeze = (why, head, form) => {
  for (const old of $$('.instead')) old.remove();
  // that one goes on
  if (why === 'out') return;
  for (const button of $$(':is(#main, #inbox) form[method=post] button:not([type=button])')) {
    button.disabled = true;
    button.title = head;
  }
  // to connect again is the business of the strip now
  $('#notice')?.removeAttribute('data-off');
  if (why === 'again' && form) form.id = 'same-server';
  for (const bar of $$('.callbar > .acts, .argline > .acts')) {
    bar.prepend(make('span', { name: 'instead row', text: head }));
    if (why === 'again' && form)
      $('.instead', bar).append(make('button', { name: 'btn go', text: AGAIN, form: form.id }));
  }
};

/** Say it, below the bar at the top. */
export const showEnd = (why, ...ways) => {
  const { word, head, rest: more } = ENDS[why];
  pill('off', word);
  $('.ended')?.remove();
  // What counts stands beside what is read out.
  const strip = make('section', { name: 'ended', 'data-why': why, 'aria-label': 'How this page ended' });
  strip.append(make('p', { role: 'alert' }, make('b', { text: head }), ` ${more}`));
  if (why === 'out') strip.append(link('Try again', location.href));
  strip.append(...ways);
  $('.top').after(strip);
  freeze(why, head, $('form', strip));
};
