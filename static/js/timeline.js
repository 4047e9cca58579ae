// The timeline: which window of it is shown, in which view, and the row that is read.
import { fitted, lasting, marks, moment, zoomed } from './axis.js';
import { $, $$, modified, write } from './page.js';

const SVG = 'http://www.w3.org/2000/svg';
const VIEW = 'parley.timeline';
const root = () => $('#timeline');
// [from, to] in seconds; null shows all of it
let chosen = null;
let drawnAt = performance.now();

const number = (element, name) => Number(element.dataset[name] ?? 0);
const nowIs = () => number(root(), 'now') + (performance.now() - drawnAt) / 1000;
const isLive = () => 'live' in root().dataset;
/** Where the last bar ends: what the whole is. */
const whole = () => Math.min(Math.max(isLive() ? nowIs() : number(root(), 'end'), 0.02), number(root(), 'scale'));
// A little more than the whole: the edge of the last bar is seen.
const shown = () => (chosen && root().dataset.view !== 'table' ? fitted(...chosen, whole()) : [0, whole() * 1.008]);
const pressed = (button, is) => button.setAttribute('aria-pressed', String(is));

const drawView = () => {
  let view = 'bars';
  try {
    view = localStorage.getItem(VIEW) ?? view;
  } catch {}
  root().dataset.view = view;
  for (const button of $$('[data-tl-view]')) pressed(button, button.dataset.tlView === view);
  const polls = $('#tl-polls');
  if (polls) root().dataset.polls = polls.checked ? 'on' : 'off';
};
const drawStrip = (from, to) => {
  const strip = $('#tl-mini');
  if (!strip) return;
  const all = whole();
  const [before, after] = $$('.dimmed', strip);
  const at = (seconds) => `${(100 * seconds) / all}%`;
  $('#tl-all').setAttribute('width', at(number(root(), 'scale')));
  before.setAttribute('width', chosen ? at(from) : '0');
  after.setAttribute('x', at(to));
  after.setAttribute('width', chosen ? at(all - to) : '0');
  const win = $('.win', strip);
  win.setAttribute('x', at(from));
  win.setAttribute('width', at(Math.min(to, all) - from));
};
const drawAxis = (from, to) => {
  const axis = $('#tl-axis');
  const field = axis.parentElement;
  const wide = field.clientWidth;
  const scale = number(root(), 'scale');
  const { step, found } = marks([from, to], Math.max(2, Math.floor(wide / 90)));
  axis.replaceChildren(
    ...found.map((seconds) => {
      const text = document.createElementNS(SVG, 'text');
      text.setAttribute('x', `${(100 * seconds) / scale}%`);
      text.setAttribute('y', '19');
      text.setAttribute('text-anchor', 'middle');
      text.textContent = moment(seconds, step);
      return text;
    }),
  );
  const style = $('#tl-wf').style;
  const pixels = wide / (to - from);
  style.setProperty('--tl-tick', `${step * pixels}px`);
  style.setProperty('--tl-shift', `${-from * pixels}px`);
};
const drawNow = (from, to) => {
  let line = $('#tl-wf > .now');
  const now = nowIs();
  if (!isLive() || now < from || now > to + (to - from) * 0.001) {
    line?.remove();
    return;
  }
  if (!line) {
    line = document.createElement('span');
    line.className = 'now';
    $('#tl-wf').append(line);
  }
  const field = $('#tl-axis').parentElement;
  line.style.insetInlineStart = `${field.offsetLeft + ((now - from) / (to - from)) * field.clientWidth}px`;
  line.style.height = `${$('#tl-rows').offsetHeight}px`;
};
/** For how many milliseconds a row has gone on since it was drawn. */
const since = (row) => ('growsIn' in row.dataset ? Math.max(0, (nowIs() - number(row, 'drawn')) * 1000) : 0);
const drawSums = (from, to) => {
  const sums = { calls: 0, server: 0, person: 0, model: 0, polls: 0 };
  let all = 0;
  for (const body of $$('#tl-rows > tbody')) {
    const isCall = body.dataset.kind === 'call';
    all += isCall;
    const more = since(body.rows[0]);
    if (number(body, 'to') + more / 1000 < from || number(body, 'from') > to) continue;
    sums.calls += isCall;
    for (const name of ['server', 'person', 'model', 'polls']) sums[name] += number(body, name);
    if (more) sums[body.rows[0].dataset.growsIn] += more;
  }
  const { step } = marks([from, to]);
  const say = (name, words) => write($(`[data-sum="${name}"]`), words);
  say('shown', chosen ? `${moment(from, step)} to ${moment(to, step)}` : lasting(whole() * 1000));
  say('calls', chosen ? `${sums.calls} of ${all}` : String(all));
  for (const name of ['server', 'person', 'model']) say(name, lasting(sums[name]));
  say('polls', String(sums.polls));
};
const grow = () => {
  const [now, scale] = [Math.min(nowIs(), number(root(), 'scale')), number(root(), 'scale')];
  for (const bar of $$('#timeline [data-grows]')) {
    bar.setAttribute('width', `${Math.max(0.02, (100 * now) / scale - Number.parseFloat(bar.getAttribute('x')))}%`);
  }
  for (const row of $$('#tl-rows tr[data-grows-in]')) {
    const more = since(row);
    const figure = $(`[data-who="${row.dataset.growsIn}"]`, row);
    figure.classList.remove('none');
    write(figure, lasting(number(row, 'ms') + more));
    write($('[data-total]', row), lasting(number(row, 'totalMs') + more));
    if (row.classList.contains('sel')) read(row);
  }
};
/** Longer than what it is drawn over: drawn again, over more. */
const outgrown = () => {
  const timeline = root();
  if ('again' in timeline.dataset || nowIs() < number(timeline, 'scale')) return;
  timeline.dataset.again = '';
  htmx.ajax('GET', location.pathname, { target: '#timeline', swap: 'outerMorph' });
};
const draw = () => {
  if (!root()) return;
  drawView();
  if (!$('#tl-axis')) return;
  const [from, to] = shown();
  const style = $('#tl-wf').style;
  style.setProperty('--tl-zoom', String(number(root(), 'scale') / (to - from)));
  style.setProperty('--tl-from', String(from / (to - from)));
  write($('#tl-window'), chosen ? lasting((to - from) * 1000) : 'all');
  drawStrip(from, to);
  drawAxis(from, to);
  drawNow(from, to);
  drawSums(from, to);
};
const choose = (next) => {
  chosen = next && next[1] - next[0] < whole() * 0.999 ? next : null;
  draw();
};
/** When a row is: its call with its asks. */
const span = (row) => {
  const body = row.closest('tbody');
  return [number(body, 'from'), number(body, 'to') + since(body.rows[0]) / 1000];
};
/** What to look at more closely where nobody pointed: the row that is read, else the bar nearest to the middle. */
const subject = ([from, to]) => {
  const middle = (from + to) / 2;
  const read = $('#tl-rows tr.sel');
  const spans = (read ? [read] : $$('#tl-rows > tbody').map((body) => body.rows[0])).map(span);
  const nearest = (one) => Math.min(Math.max(middle, one[0]), one[1]);
  const points = spans.map(nearest).filter((at) => at >= from && at <= to);
  return points.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle))[0] ?? middle;
};
const zoom = (factor, around = null) => {
  const [from, to] = shown();
  choose(zoomed([from, to], factor, around ?? subject([from, to]), whole()));
};
/** A row that is read is in the window. */
const bring = (row) => {
  if (!chosen || row.classList.contains('polls')) return;
  const [[from, to], [began, ended]] = [shown(), span(row)];
  if (ended >= from && began <= to) return;
  const [half, middle] = [(to - from) / 2, (began + Math.min(ended, began + to - from)) / 2];
  choose(fitted(middle - half, middle + half, whole()));
};
const move = (share) => {
  const [from, to] = shown();
  const by = (to - from) * share;
  choose(fitted(from + by, to + by, whole()));
};

const read = (row) => {
  for (const one of $$('#tl-rows .sel')) one.classList.remove('sel');
  if (!row || row.classList.contains('polls')) return;
  row.classList.add('sel');
  const words = (element) => element.textContent.trim();
  const name = document.createElement('b');
  name.textContent = [...$('.nm', row).childNodes]
    .filter((node) => node.nodeName !== 'svg')
    .map(words)
    .filter(Boolean)
    .join(', ');
  const total = document.createElement('span');
  total.textContent = `${words($('[data-total]', row))} total`;
  const parts = document.createElement('span');
  parts.className = 'dim';
  const [, server, person, model] = $$('.fig', row).map(words);
  parts.textContent = [
    ['server', server],
    ['person', person],
    ['model or rule', model],
  ]
    .filter(([, took]) => took !== '–')
    .map((pair) => pair.join(' '))
    .join(', ');
  $('#tl-read').replaceChildren(name, total, parts);
};

const ACTS = { '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => choose(null) };
document.addEventListener('keydown', (event) => {
  if (modified(event) || !root() || event.target.matches?.('input, textarea, select, [contenteditable]')) return;
  const act = ACTS[event.key];
  if (act) {
    event.preventDefault();
    return act();
  }
  if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
    event.preventDefault();
    return move(event.key === 'ArrowLeft' ? -0.25 : 0.25);
  }
  if ((event.key === 'ArrowUp' || event.key === 'ArrowDown') && $('#tl-rows')?.contains(event.target)) {
    const names = $$('#tl-rows tbody .nm').filter((name) => name.offsetParent);
    const next = names[names.indexOf(event.target) + (event.key === 'ArrowUp' ? -1 : 1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
});
document.addEventListener('focusin', (event) => {
  const row = event.target.closest?.('#tl-rows tbody tr');
  if (!row) return;
  read(row);
  bring(row);
});
document.addEventListener('click', (event) => {
  const view = event.target.closest?.('[data-tl-view]');
  if (view) {
    try {
      localStorage.setItem(VIEW, view.dataset.tlView);
    } catch {}
    return draw();
  }
  const how = event.target.closest?.('[data-tl-zoom]')?.dataset.tlZoom;
  if (how) (how === 'all' ? () => choose(null) : () => zoom(how === 'in' ? 0.5 : 2))();
});
document.addEventListener('change', (event) => {
  if (event.target.id === 'tl-polls') drawView();
});
document.addEventListener(
  'wheel',
  (event) => {
    const field = event.ctrlKey && event.target.closest?.('#tl-wf .c2, #tl-mini');
    if (!field) return;
    event.preventDefault();
    const box = field.getBoundingClientRect();
    const [from, to] = field.id === 'tl-mini' ? [0, whole()] : shown();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, from + ((event.clientX - box.left) / box.width) * (to - from));
  },
  { passive: false },
);
// A press on the strip begins a window, a drag says how wide it is; a press alone moves the window there.
document.addEventListener('pointerdown', (event) => {
  const strip = event.target.closest?.('#tl-mini');
  if (!strip || event.button) return;
  const at = (one) => {
    const box = strip.getBoundingClientRect();
    return Math.min(Math.max((one.clientX - box.left) / box.width, 0), 1) * whole();
  };
  const first = at(event);
  strip.setPointerCapture(event.pointerId);
  const drag = (one) => {
    const last = at(one);
    if (Math.abs(last - first) > whole() / 200) choose([Math.min(first, last), Math.max(first, last)]);
  };
  const end = (one) => {
    strip.removeEventListener('pointermove', drag);
    if (Math.abs(at(one) - first) > whole() / 200 || !chosen) return;
    const half = (chosen[1] - chosen[0]) / 2;
    choose(fitted(first - half, first + half, whole()));
  };
  strip.addEventListener('pointermove', drag);
  strip.addEventListener('pointerup', end, { once: true });
});
new ResizeObserver(() => draw()).observe(document.body);
document.addEventListener('htmx:after:swap', (event) => {
  const timeline = event.target.closest?.('#timeline') ?? $('#timeline', event.target);
  if (!timeline) return;
  if (event.target === timeline || event.target.contains(timeline)) drawnAt = performance.now();
  draw();
  const row = document.activeElement?.closest?.('#tl-rows tbody tr');
  if (row) read(row);
});
setInterval(() => {
  if (!root() || !isLive() || document.hidden) return;
  grow();
  outgrown();
  if (!chosen) draw();
}, 1000);
draw();
