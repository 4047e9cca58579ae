// The command palette and the list of keys. Texts of a server are set as text, never as markup.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const MOST = 200;
  let items = [], shown = [], at = 0, back = null, loads = 0;

  const dialog = () => $('#palette'), box = () => $('#palette-box'), list = () => $('#palette-list');
  const base = () => $('#stream')?.dataset.base;
  // JSON has the addresses that scripts use; this page lives below a path of its own.
  const below = (href) => document.documentElement.dataset.root + href.slice(1);

  // ---- which items match, best first: a name that begins with the words, then one that has them, then the rest
  const rank = (item, words) => {
    const label = item.label.toLowerCase(), all = `${label} ${item.detail.toLowerCase()} ${item.kind}`;
    if (!words.every((word) => all.includes(word))) return -1;
    if (!words.length) return item.kind === 'ask' ? 3 : item.kind === 'page' ? 2 : 1;
    return label.startsWith(words[0]) ? 3 : words.every((word) => label.includes(word)) ? 2 : 1;
  };
  const icon = (name) => {
    const NS = 'http://www.w3.org/2000/svg', svg = document.createElementNS(NS, 'svg'), use = document.createElementNS(NS, 'use');
    svg.setAttribute('class', 'i');
    svg.setAttribute('aria-hidden', 'true');
    use.setAttribute('href', `${dialog().dataset.icons}#${name}`);
    svg.append(use);
    return svg;
  };
  const text = (tag, words, name) => {
    const el = document.createElement(tag);
    el.textContent = words;
    if (name) el.className = name;
    return el;
  };
  const option = (item, index) => {
    const el = document.createElement('div');
    el.id = `palette-${index}`;
    el.role = 'option';
    el.setAttribute('aria-selected', 'false');
    el.dataset.index = index;
    el.append(icon(item.icon), text(item.kind === 'tool' || item.kind === 'call' ? 'code' : 'span', item.label), text('span', item.detail, 'dim s'), text('span', item.kind, 'k'));
    return el;
  };
  const mark = (index) => {
    if (!shown.length) { box().removeAttribute('aria-activedescendant'); return; }
    at = (index + shown.length) % shown.length;
    for (const el of list().children) el.setAttribute('aria-selected', String(+el.dataset.index === at));
    const current = $(`#palette-${at}`);
    box().setAttribute('aria-activedescendant', current.id);
    current.scrollIntoView({ block: 'nearest' });
  };
  const draw = () => {
    const words = box().value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const ranked = items.map((item) => [rank(item, words), item]).filter(([score]) => score > 0);
    shown = ranked.sort(([a], [b]) => b - a).map(([, item]) => item);
    const cut = shown.length > MOST ? shown.length - MOST : 0;
    shown.length -= cut;
    list().replaceChildren(...shown.map(option));
    say(!shown.length ? 'Nothing of that name.' : cut ? `${shown.length} shown, ${cut} more: type on to find them.` : `${shown.length} ${shown.length === 1 ? 'place' : 'places'}`);
    mark(0);
  };
  const say = (words) => { const el = $('#palette-say'); if (el.textContent !== words) el.textContent = words; };
  const go = (index, elsewhere) => {
    const item = shown[index];
    if (!item) return;
    if (elsewhere) { window.open(below(item.href), '_blank', 'noopener'); return; }
    dialog().close();
    location.assign(below(item.href));
  };

  // ---- open and close; the focus goes back to where it was
  const show = (el) => { back = document.activeElement; el.showModal(); };
  const open = async () => {
    if (!dialog() || !base() || dialog().open) return;
    $('#help').close();
    items = [];
    box().value = '';
    list().replaceChildren();
    show(dialog());
    box().focus();
    say('Looking…');
    const mine = ++loads;
    try {
      const answer = await fetch(`${base()}/palette`, { headers: { accept: 'application/json' } });
      if (!answer.ok) throw new Error(String(answer.status));
      const found = (await answer.json()).items;
      if (mine !== loads) return;
      items = found;
      draw();
    } catch {
      if (mine === loads) say('Parley could not be reached.');
    }
  };
  const help = () => { const el = $('#help'); if (el && !el.open && !dialog()?.open) show(el); };

  document.addEventListener('DOMContentLoaded', () => {
    if (!dialog()) return;
    for (const el of [dialog(), $('#help')]) {
      el.addEventListener('close', () => { if (back?.isConnected) back.focus(); back = null; });
      // A click on the ground beside it: the event's target is the dialog itself only there.
      el.addEventListener('click', (event) => {
        const r = el.getBoundingClientRect();
        if (event.target === el && (event.clientY < r.top || event.clientY > r.bottom || event.clientX < r.left || event.clientX > r.right)) el.close();
      });
    }
    box().addEventListener('input', draw);
    box().addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
      if (step) { event.preventDefault(); mark(Math.abs(step) === 1 ? at + step : Math.max(0, Math.min(shown.length - 1, at + step))); }
      if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); go(at, event.ctrlKey || event.metaKey); }
    });
    list().addEventListener('click', (event) => {
      const el = event.target.closest('[role=option]');
      if (el) go(+el.dataset.index, event.ctrlKey || event.metaKey);
    });
    $('#find')?.addEventListener('click', open);
  });
  // First of all listeners, so that no other key of the page acts behind an open dialog.
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (dialog()?.open) dialog().close(); else open();
      return;
    }
    if (dialog()?.open || $('#help')?.open) { if (!event.target.closest?.('dialog')) event.stopPropagation(); else if (event.key === 'Escape' || event.key === 'n' || event.key === '/') event.stopImmediatePropagation(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input, textarea, select')) return;
    if (event.key === '?') { event.preventDefault(); help(); }
  }, true);

  // ---- the height of the drawer: by pointer, or by the arrows on the separator
  const KEY = 'parley-drawer';
  const size = (pixels, keep = true) => {
    const drawer = $('#drawer'), grip = $('#grip');
    if (!drawer || !grip) return;
    const height = Math.round(Math.max(96, Math.min(innerHeight * 0.75, pixels)));
    drawer.style.setProperty('--drawer', `${height}px`);
    drawer.toggleAttribute('data-sized', true);
    grip.setAttribute('aria-valuenow', height);
    grip.setAttribute('aria-valuemax', Math.round(innerHeight * 0.75));
    if (keep) try { sessionStorage.setItem(KEY, height); } catch { /* not kept */ }
  };
  document.addEventListener('DOMContentLoaded', () => {
    const grip = $('#grip'), drawer = $('#drawer');
    if (!grip || !drawer) return;
    try { const kept = +sessionStorage.getItem(KEY); if (kept) size(kept, false); } catch { /* as it is */ }
    if (!drawer.hasAttribute('data-sized')) grip.setAttribute('aria-valuenow', Math.round(drawer.offsetHeight));
    grip.addEventListener('pointerdown', (event) => {
      if (drawer.hasAttribute('data-folded')) return;
      grip.setPointerCapture(event.pointerId);
      const from = event.clientY, height = drawer.offsetHeight;
      const move = (moved) => size(height + from - moved.clientY);
      grip.addEventListener('pointermove', move);
      grip.addEventListener('lostpointercapture', () => grip.removeEventListener('pointermove', move), { once: true });
    });
    grip.addEventListener('keydown', (event) => {
      const step = { ArrowUp: 24, ArrowDown: -24, PageUp: 120, PageDown: -120 }[event.key];
      const to = event.key === 'Home' ? 96 : event.key === 'End' ? innerHeight : step && drawer.offsetHeight + step;
      if (to) { event.preventDefault(); size(to); }
    });
  });
})();
