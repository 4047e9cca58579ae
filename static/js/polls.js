// A run of polls (the same question and its replies, again and again) is one line of the log, until it is opened. The
// server marks each row that may be folded; here they are only counted and put behind their line.
import { $, $$, make, write } from './dom.js';
import { runs } from './runs.js';

const line = () => {
  const cells = ['q', 'at', 'lane', 'meth', 'peek', 'z', 'z sz'].map((name) => make('span', { name }));
  return make('li', { name: 'polls' }, make('button', { name: 'm', type: 'button' }, ...cells));
};
const seq = (row) => row.id.slice(1);
const draw = (head, rows) => {
  const [first, last] = [rows[0], rows.at(-1)];
  const isOpen = head.dataset.open !== undefined;
  const asked = rows.filter((row) => row.dataset.k === 'request').length;
  head.id = `p${seq(first)}`;
  if (head.nextElementSibling !== first) first.before(head);
  head.firstElementChild.setAttribute('aria-expanded', String(isOpen));
  write($('.at', head), $('time', last).textContent);
  write($('.meth', head), first.dataset.poll);
  write($('.peek', head), `${asked} times, messages ${seq(first)} to ${seq(last)}. ${isOpen ? 'Fold' : 'Show'} them`);
  return isOpen;
};

/** Put every run of a list behind its line. */
export const fold = (list) => {
  if (!$('[data-poll], .polls', list)) return;
  // A line belongs to the row behind it, also when earlier rows were put before it.
  const heads = new Map($$('.polls', list).map((head) => [head.nextElementSibling, head]));
  const rows = [...list.children].filter((row) => row.className !== 'polls');
  const open = new Set(rows.filter((row) => row.dataset.poll));
  for (const [begin, end] of runs(rows.map((row) => row.dataset.poll))) {
    const run = rows.slice(begin, end);
    const head = run.map((row) => heads.get(row)).find((found) => found) ?? line();
    for (const [row, other] of heads) if (other === head) heads.delete(row);
    if (draw(head, run)) continue;
    for (const row of run) {
      open.delete(row);
      row.hidden = true;
    }
  }
  for (const row of open) row.hidden = false;
  for (const head of heads.values()) head.remove();
};
