// Results: a branch of a large tree comes when it is opened, a text is shown in another way, and both can be copied.
import { $, $$, make, modified } from './dom.js';
import { sentence } from './refusals.js';

// ---- a tree: where a line stands in it, and what belongs below
const pathOf = (line) => {
  const parts = [];
  for (let at = line; at && !at.matches('.json'); at = at.parentElement) {
    if (at.dataset.k !== undefined) parts.unshift(at.dataset.k);
  }
  return parts.map((part) => `/${part}`).join('');
};
const address = (line, query) => {
  const url = new URL(line.closest('[data-tree]').dataset.tree, location.href);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.pathname + url.search;
};
const branch = (line, offset, target, swap) =>
  htmx.ajax('GET', address(line, { pointer: pathOf(line), offset }), { target, swap });
document.addEventListener(
  'toggle',
  (event) => {
    const line = event.target;
    if (!line.matches?.('.json details[data-lazy]') || !line.open) return;
    line.removeAttribute('data-lazy');
    branch(line, 0, $(':scope > div', line), 'innerHTML');
  },
  true,
);
const more = async (button) => {
  const before = button.previousElementSibling;
  button.disabled = true;
  await branch(button.closest('details'), button.dataset.more, button, 'outerHTML');
  const next = before?.nextElementSibling;
  if (next?.matches('details')) $('summary', next).focus();
};

// ---- a text as Markdown, or as a page in a frame that may do nothing: fetched when it is asked for
const frame = (src) =>
  make('iframe', {
    sandbox: '',
    referrerpolicy: 'no-referrer',
    title: 'A page from the server, without script and without loads',
    src,
  });
const markdown = async (src, place) => {
  const answer = await fetch(src, { headers: { 'HX-Request': 'true' } });
  const html = await answer.text();
  if (answer.ok) place.innerHTML = html;
  if (answer.ok) return;
  const text = sentence(html) || `Not shown: the answer was ${answer.status}.`;
  place.replaceChildren(make('p', { name: 'dim', text }));
};
const showAs = async (button) => {
  const group = button.parentElement;
  const controlled = (element) => document.getElementById(element.getAttribute('aria-controls'));
  const [text, other] = [controlled($('[data-as=text]', group)), controlled(group.lastElementChild)];
  const { src, as } = button.dataset;
  if (src && !other.childElementCount) {
    if (as === 'frame') other.append(frame(src));
    else await markdown(src, other);
  }
  text.hidden = !!src;
  other.hidden = !src;
  for (const one of group.children) one.setAttribute('aria-pressed', String(one === button));
};

// ---- copying: a result, or the path and the value of the line that was pressed last
const copy = async (button, text) => {
  button.dataset.words ??= button.textContent;
  try {
    await navigator.clipboard.writeText(await text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not copied';
  }
  setTimeout(() => {
    button.textContent = button.dataset.words;
  }, 1500);
};
const fetched = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.text();
};
let picked = null;
const pick = (line) => {
  picked?.classList.remove('jp');
  picked = line;
  $('#jbar')?.remove();
  const bar = make('span', { id: 'jbar' }, make('code', { role: 'status', text: pathOf(line) || '/' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'path', text: 'Copy path' }));
  bar.append(make('button', { type: 'button', 'data-pick': 'value', text: 'Copy value' }));
  line.classList.add('jp');
  line.after(bar);
};

// ---- by keyboard: up and down pick a line, left and right fold it, Enter goes to its buttons, Escape back to the tree
const step = (tree, here, by) => {
  const lines = $$('.l[data-k], summary', tree).filter((line) => line.checkVisibility());
  const at = here ? lines.indexOf(here) + by : 0;
  const next = lines[Math.max(0, Math.min(lines.length - 1, at))];
  if (!next) return false;
  pick(next);
  next.scrollIntoView({ block: 'nearest' });
  return true;
};
const act = (event, tree) => {
  const here = picked && tree.contains(picked) ? picked : null;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) return step(tree, here, by);
  if (here?.matches('summary') && (event.key === 'ArrowRight' || event.key === 'ArrowLeft')) {
    here.parentElement.open = event.key === 'ArrowRight';
    return true;
  }
  if (event.key !== 'Enter' || !here || event.target !== tree) return false;
  $('#jbar button').focus();
  return true;
};
document.addEventListener('keydown', (event) => {
  const tree = event.target.closest?.('.json[data-tree]');
  if (!tree || modified(event)) return;
  if (!event.target.closest('#jbar')) {
    if (act(event, tree)) event.preventDefault();
  } else if (event.key === 'Escape') {
    event.stopPropagation();
    tree.focus();
  }
});
document.addEventListener('click', (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at('.json button[data-more]')) return more(at('.json button[data-more]'));
  if (at('.as button[data-as]')) return showAs(at('.as button[data-as]'));
  const whole = at('button[data-copy]');
  if (whole) return copy(whole, fetched(whole.dataset.copy));
  const part = at('#jbar button[data-pick]');
  if (part) {
    const pointer = pathOf(picked);
    return copy(part, part.dataset.pick === 'path' ? pointer : fetched(address(picked, { pointer, value: 1 })));
  }
  const line = at('.json[data-tree] .l[data-k], .json[data-tree] summary');
  if (line && !getSelection()?.toString()) pick(line);
});
