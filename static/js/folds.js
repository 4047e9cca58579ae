// What repeats in a list of messages is one line: progress by its token, polls by their task. The server marks each row
// that may be folded (data-fold), and folds what a page begins with (app/core/folds.py); here the same goes on while
// rows arrive. A closed line has no rows behind it: however long somebody polls, nothing else is pushed out. Opening one
// fetches them.
import { bar, foldWords, RUN, took } from './decide.js';
import { $, $$, base, make, write } from './page.js';

const SVG = 'http://www.w3.org/2000/svg';

const isFold = (row) => row.classList.contains('fold');
const isOpen = (head) => head.dataset.open !== undefined;
const first = (row) => +row.id.slice(1);
/** The newest message of a row, or of a line. */
export const last = (row) => +(row.dataset.last ?? row.id.slice(1));
const moment = (row) => Date.parse($('time', row).dateTime);
const asks = (row) => (row.dataset.k === 'request' ? 1 : 0);
/** A row that somebody looks at stays where it is. */
const isHeld = (row) => row.contains(document.activeElement) || !!$('[aria-current], .pair', row);

const line = (row, prefix) => {
  const cells = ['q', 'time', 'lane', 'meth', 'gist', 'z took', 'z sz'].map((name) => {
    if (name === 'time' || name === 'lane') return $(name === 'time' ? 'time' : '.lane', row).cloneNode(true);
    return make('span', { name });
  });
  cells[4].append(make('span', { name: 'peek' }), make('span', { name: 'count' }));
  const button = make('button', { name: 'm foldrow', type: 'button', tabindex: '-1' }, ...cells);
  write(cells[0], $('.q', row).textContent);
  return make('li', { name: 'fold', id: prefix + first(row), 'data-fold': row.dataset.fold }, button);
};
const drawBar = (cell, ms) => {
  let rect = $('rect', cell);
  if (!rect) {
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('class', 'dur');
    svg.setAttribute('aria-hidden', 'true');
    rect = document.createElementNS(SVG, 'rect');
    rect.setAttribute('height', '100%');
    svg.append(rect);
    cell.append(svg, make('span'));
  }
  rect.setAttribute('width', `${bar(ms)}%`);
  write(cell.lastElementChild, took(ms));
};
const draw = (head) => {
  const { fold: key, from, to, count, asked, ms } = head.dataset;
  head.firstElementChild.setAttribute('aria-expanded', String(isOpen(head)));
  write($('.meth', head), key.split(' ')[0]);
  $('.meth', head).classList.add('no');
  write($('.peek', head), foldWords({ key, from, to, asked: +asked, ms: +ms }));
  write($('.count', head), `${count} ${isOpen(head) ? 'shown' : 'folded'}`);
  drawBar($('.took', head), +ms);
};

export class Folds {
  #list;
  #prefix;
  #newest = 0;
  /** Of the last stretch of rows that repeat something: the line, or the rows that are not enough for one, by key. */
  #tail = new Map();
  #grown = new Set();

  constructor(list) {
    this.#list = list;
    this.#prefix = list.id === 'found' ? 'g' : 'p';
    this.restart();
  }

  get newest() {
    return this.#newest;
  }

  /** Everything is new: look at what there is. */
  restart() {
    this.#tail = this.#stretch(this.#list.lastElementChild, 'previousElementSibling');
    this.#newest = Math.max(0, ...[...this.#list.children].slice(-50).map(last));
  }

  /** The rows that repeat something, from one on until one that does not, by key and in their order. */
  #stretch(row, next) {
    const found = new Map();
    for (; row?.dataset.fold !== undefined; row = row[next]) {
      if (row.dataset.in !== undefined) continue;
      const entry = found.get(row.dataset.fold) ?? { head: null, rows: [] };
      if (isFold(row)) entry.head = row;
      else entry.rows[next === 'nextElementSibling' ? 'push' : 'unshift'](row);
      found.set(row.dataset.fold, entry);
    }
    return found;
  }

  /** Rows were put at the end. One that is older than the newest was drawn anew: it goes where it belongs. */
  take(rows) {
    for (const row of rows) {
      if (row.parentElement !== this.#list || isFold(row) || row.dataset.in !== undefined) continue;
      if (first(row) <= this.#newest) this.#place(row);
      else this.#append(row);
    }
    for (const head of this.#grown) draw(head);
    this.#grown.clear();
  }

  #append(row) {
    this.#newest = first(row);
    const key = row.dataset.fold;
    if (key === undefined) return this.#tail.clear();
    const entry = this.#tail.get(key) ?? { head: null, rows: [] };
    this.#tail.set(key, entry);
    if (entry.head?.isConnected) return this.#join(entry.head, row);
    entry.head = null;
    entry.rows.push(row);
    // While somebody looks at one of them they stay; that is asked now and then, not for each.
    if (entry.rows.length % RUN || entry.rows.some(isHeld)) return;
    entry.head = this.#combine(entry.rows.filter((one) => one.isConnected));
    entry.rows = [];
  }

  #join(head, row) {
    const { dataset } = head;
    dataset.count = +dataset.count + 1;
    dataset.asked = +dataset.asked + asks(row);
    dataset.ms = Math.max(0, moment(row) - moment(head));
    dataset.to = row.dataset.step ?? '';
    dataset.last = first(row);
    this.#grown.add(head);
    if (!isOpen(head)) return row.remove();
    row.dataset.in = head.id;
    (this.#within(head).at(-1) ?? head).after(row);
  }

  #within(head) {
    return $$(`:scope > [data-in="${head.id}"]`, this.#list);
  }

  /** One line of several, rows or lines, in their order; it stands where the first of them does. */
  #combine(items) {
    const [begin, end] = [items[0], items.at(-1)];
    const sum = (of) => items.reduce((many, item) => many + of(item), 0);
    for (const item of items) if (isFold(item) && isOpen(item)) this.#close(item);
    const head = isFold(begin) ? begin : line(begin, this.#prefix);
    const until = moment(end) + +(end.dataset.ms ?? 0);
    const facts = {
      count: sum((item) => +(item.dataset.count ?? 1)),
      asked: sum((item) => +(item.dataset.asked ?? asks(item))),
      from: begin.dataset.from ?? begin.dataset.step ?? '',
      to: end.dataset.to ?? end.dataset.step ?? '',
      last: last(end),
      ms: Math.max(0, until - moment(begin)),
    };
    Object.assign(head.dataset, facts);
    if (head !== begin) begin.before(head);
    for (const item of items) if (item !== head) item.remove();
    draw(head);
    return head;
  }

  /** A row that was drawn anew, because there is a finding now: in the place of its old one, or out of its line. */
  #place(row) {
    const old = $$(`:scope > #${CSS.escape(row.id)}`, this.#list).find((one) => one !== row);
    if (old) {
      old.replaceWith(row);
      return;
    }
    const heads = $$(':scope > .fold', this.#list).filter(
      (head) => first(head) <= first(row) && last(head) >= first(row),
    );
    const head = heads.find((one) => $('.meth', one).textContent === $('.meth', row).textContent);
    if (head) {
      head.dataset.count = +head.dataset.count - 1;
      head.dataset.asked = +head.dataset.asked - asks(row);
      this.#grown.add(head);
    }
    const before = [...this.#list.children].findLast((one) => one !== row && first(one) < first(row));
    if (before) before.after(row);
    else row.remove();
  }

  /** Earlier rows were put before `next`: what repeats across the seam is one line. */
  seam(next) {
    const earlier = this.#stretch(next?.previousElementSibling, 'previousElementSibling');
    for (const [key, later] of this.#stretch(next, 'nextElementSibling')) {
      const before = earlier.get(key);
      if (!before) continue;
      const items = [before.head, ...before.rows, later.head, ...later.rows].filter(Boolean);
      const many = items.reduce((sum, item) => sum + +(item.dataset.count ?? 1), 0);
      if (many >= RUN && !items.some(isHeld)) this.#combine(items);
    }
    this.restart();
  }

  /** Open a line, or close it. */
  async toggle(head, query = '') {
    if (isOpen(head)) return this.#close(head);
    const { fold, last: to } = head.dataset;
    head.dataset.open = '';
    draw(head);
    const asked = new URLSearchParams(query);
    for (const [name, value] of Object.entries({ fold, first: first(head), last: to })) asked.set(name, value);
    const answer = await fetch(`${base()}/log?${asked}`, { headers: { 'HX-Request': 'true', Accept: 'text/html' } });
    if (!answer.ok || !isOpen(head)) return this.#close(head);
    const rows = $$('li', new DOMParser().parseFromString(await answer.text(), 'text/html'));
    for (const row of rows) row.dataset.in = head.id;
    head.after(...rows);
  }

  #close(head) {
    for (const row of this.#within(head)) row.remove();
    delete head.dataset.open;
    draw(head);
  }
}
