// Suggestions of the server while an argument is typed: a listbox below the field, by pointer or by keyboard.
(() => {
  'use strict';
  const PAUSE = 150;
  const known = new Map();
  let timer = 0, asked = null;

  const listOf = (input) => document.getElementById(input.getAttribute('aria-controls'));
  const options = (input) => [...listOf(input).querySelectorAll('[role=option]')];
  const say = (input, words) => { const el = input.form.querySelector('[data-suggestions]'); if (el) el.textContent = words; };

  const close = (input) => {
    const list = listOf(input);
    list.hidden = true;
    list.replaceChildren();
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const mark = (input, index) => {
    const all = options(input);
    if (!all.length) return;
    const at = (index + all.length) % all.length;
    all.forEach((one, place) => one.setAttribute('aria-selected', String(place === at)));
    input.setAttribute('aria-activedescendant', all[at].id);
    all[at].scrollIntoView({ block: 'nearest' });
  };
  const marked = (input) => options(input).findIndex((one) => one.getAttribute('aria-selected') === 'true');
  const pick = (input, option) => {
    input.value = option.textContent;
    close(input);
    say(input, '');
    // The form hears of it like of anything typed; the list stays closed.
    input.dataset.picked = input.value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const show = (input, found) => {
    const list = listOf(input);
    const rows = found.values.map((value, index) => {
      const row = document.createElement('li');
      row.id = `${list.id}-${index}`;
      row.setAttribute('role', 'option');
      row.setAttribute('aria-selected', 'false');
      row.textContent = value;
      return row;
    });
    list.replaceChildren(...rows);
    const more = found.hasMore ? (found.total > rows.length ? `${found.total - rows.length} more on the server: type on` : 'more on the server: type on') : '';
    list.dataset.more = more;
    list.hidden = !rows.length;
    input.setAttribute('aria-expanded', String(!!rows.length));
    input.removeAttribute('aria-activedescendant');
    say(input, rows.length ? `${rows.length} ${rows.length === 1 ? 'suggestion' : 'suggestions'}${more && `, ${more}`}` : found.error ? `No suggestions: ${found.error}` : 'No suggestions');
  };
  const ask = async (input) => {
    const form = input.form, body = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (name.startsWith('arg.')) body.set(name, value);
    body.set('_ref', form.dataset.ref);
    body.set('_of', form.dataset.of);
    body.set('_argument', input.dataset.argument);
    const key = body.toString();
    if (known.has(key)) return show(input, known.get(key));
    asked?.abort();
    asked = new AbortController();
    try {
      const headers = { accept: 'application/json' };
      const answer = await fetch(form.dataset.complete, { method: 'POST', body, headers, signal: asked.signal });
      if (!answer.ok) return close(input);
      const found = await answer.json();
      if (!found.error) { if (known.size > 200) known.clear(); known.set(key, found); }
      if (document.activeElement === input) show(input, found);
    } catch { /* another key was pressed, or Parley is away */ }
  };
  const soon = (input, pause) => { clearTimeout(timer); timer = setTimeout(() => ask(input), pause); };
  const combo = (event) => event.target.closest?.('input[role=combobox][data-argument]');

  document.addEventListener('input', (event) => {
    const input = combo(event);
    if (!input) return;
    if (input.dataset.picked === input.value) { delete input.dataset.picked; return; }
    soon(input, PAUSE);
  });
  document.addEventListener('focusin', (event) => { const input = combo(event); if (input && !input.value) soon(input, PAUSE); });
  document.addEventListener('focusout', (event) => { const input = combo(event); if (input) { clearTimeout(timer); close(input); } });
  document.addEventListener('keydown', (event) => {
    const input = combo(event);
    if (!input || event.isComposing) return;
    const open = input.getAttribute('aria-expanded') === 'true', at = marked(input);
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!open) return soon(input, 0);
      mark(input, event.key === 'ArrowDown' ? at + 1 : at < 0 ? -1 : at - 1);
    } else if (open && event.key === 'Enter' && at >= 0) {
      event.preventDefault();
      pick(input, options(input)[at]);
    } else if (open && event.key === 'Escape') {
      event.preventDefault();
      close(input);
    }
  });
  // Pressing must not take the focus away, or the list would close before it is chosen from.
  document.addEventListener('pointerdown', (event) => {
    const option = event.target.closest?.('.suggest [role=option]');
    if (!option) return;
    event.preventDefault();
    pick(document.querySelector(`[aria-controls="${option.parentElement.id}"]`), option);
  });
})();
