// Two results by line: what is folded, and the way from one difference to the next.
import { stepped } from './decide.js';
import { $, $$, modified, write } from './page.js';

let isAll = false;
let at = -1;

const unfold = (button, isOpen) => {
  button.setAttribute('aria-expanded', String(isOpen));
  const lines = document.getElementById(button.getAttribute('aria-controls'));
  if (lines) lines.hidden = !isOpen;
};
const draw = () => {
  for (const button of $$('[data-lines]')) {
    button.setAttribute('aria-pressed', String((button.dataset.lines === 'all') === isAll));
  }
};
const show = (all) => {
  isAll = all;
  for (const button of $$('.diff .eq button')) unfold(button, all);
  draw();
};
const go = (step) => {
  const rows = $$('.diff [data-diff]');
  if (!rows.length) return;
  at = stepped(at, step, rows.length);
  rows[at].focus({ preventScroll: true });
  rows[at].scrollIntoView({ block: 'center' });
  write($('#diff-at'), `${at + 1} of ${rows.length}`);
};

document.addEventListener('click', (event) => {
  const on = (selector) => event.target.closest?.(selector);
  const fold = on('.diff .eq button');
  if (fold) return unfold(fold, fold.getAttribute('aria-expanded') !== 'true');
  if (on('[data-lines]')) return show(on('[data-lines]').dataset.lines === 'all');
  if (on('[data-step]')) return go(+on('[data-step]').dataset.step);
  // A menu of calls closes when something else is pressed.
  for (const menu of $$('.pick-call[open]')) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener('keydown', (event) => {
  const menu = event.key === 'Escape' && event.target.closest?.('.pick-call[open]');
  if (menu) {
    menu.open = false;
    $('summary', menu).focus();
    return;
  }
  if (!['j', 'k'].includes(event.key) || modified(event) || !$('.diff')) return;
  if (event.target.matches?.('input:not([type=checkbox], [type=radio]), textarea, select')) return;
  event.preventDefault();
  go(event.key === 'j' ? 1 : -1);
});
// The page was drawn anew: what was chosen holds, and the count begins again.
document.addEventListener('htmx:after:swap', (event) => {
  if (!$('#compare') || !event.target.closest?.('#compare, #fetches')) return;
  at = -1;
  if (isAll) show(true);
});
