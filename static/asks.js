// Asks in the page: what was typed stays, a settled card says so and takes no more, and the keyboard finds the next one.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const session = () => $('#stream')?.dataset.base || '';

  // ---- drafts: unsent text, kept in this tab by ask
  const key = (ask) => `parley-draft ${session()} ${ask}`;
  const fields = (card) => $$('input[name], select[name], textarea[name]', card).filter((one) => one.type !== 'hidden' && one.name !== 'force');
  const keep = (card) => {
    const draft = fields(card).map((one) => [one.id, one.type === 'checkbox' ? one.checked : one.value]);
    try { sessionStorage.setItem(key(card.dataset.ask), JSON.stringify(draft)); } catch { /* not kept, then */ }
  };
  const restore = (card) => {
    let draft = null;
    try { draft = JSON.parse(sessionStorage.getItem(key(card.dataset.ask))); } catch { return; }
    for (const [id, value] of draft || []) {
      const one = id && document.getElementById(id);
      if (!one || !card.contains(one)) continue;
      if (one.type === 'checkbox') one.checked = value; else one.value = value;
    }
  };
  const forget = (ask) => { try { sessionStorage.removeItem(key(ask)); } catch { /* nothing there */ } };

  // ---- a card whose ask is settled: its fields stay readable and take no more
  const settle = (card) => {
    const word = $('[data-settled]', card)?.dataset.settled;
    const set = $('fieldset.plain-set', card);
    if (set) set.disabled = word !== undefined;
    if (!word || word === 'sending') return;
    card.dataset.s = word;
    for (const one of $$('time[data-deadline], time[data-since]', card)) one.replaceWith(word);
    for (const bar of $$('progress.ttl', card)) bar.remove();
    forget(card.dataset.ask);
  };
  const look = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const card = node.closest('.ask');
    if (card && node.matches?.('[data-settled]')) return settle(card);
    for (const one of node.matches?.('.ask') ? [node] : $$('.ask', node)) {
      if (one.dataset.s === 'open') restore(one); else forget(one.dataset.ask);
    }
  };

  // ---- the next ask, by key or button
  const next = () => {
    const open = $$('#asks .ask[data-s=open]');
    if (!open.length) return;
    const now = open.findIndex((card) => card.contains(document.activeElement));
    const card = open[(now + 1) % open.length];
    $('details', card).open = true;
    const target = $('.in input:not([type=hidden]), .in select, .in textarea, .in button', card) || $('summary', card);
    target.focus();
    card.scrollIntoView({ block: 'nearest' });
  };

  // ---- time left, as a bar
  const tick = () => {
    for (const bar of $$('progress[data-deadline]')) {
      const left = Math.max(0, (Date.parse(bar.dataset.deadline) - Date.now()) / 1000);
      bar.value = Math.min(left, bar.max);
      bar.classList.toggle('soon', left < 20);
    }
  };

  document.addEventListener('DOMContentLoaded', () => {
    for (const card of $$('.ask[data-s=open]')) restore(card);
    for (const list of $$('#inbox, #main')) {
      new MutationObserver((changes) => {
        for (const change of changes) for (const node of change.addedNodes) look(node);
      }).observe(list, { childList: true, subtree: true });
    }
    setInterval(tick, 500);
    tick();
  });
  document.addEventListener('input', (event) => {
    const card = event.target.closest?.('.ask');
    if (card) keep(card);
  });
  document.addEventListener('click', (event) => {
    if (event.target.closest?.('#next-ask')) return next();
    const to = event.target.closest?.('[data-to-ask]');
    const card = to && document.getElementById(`ask-${to.dataset.toAsk}`);
    if (card) {
      event.preventDefault();
      $('details', card).open = true;
      card.scrollIntoView({ block: 'nearest' });
      return ($('.in input:not([type=hidden]), .in select, .in textarea', card) || $('summary', card)).focus();
    }
    // The link opens in its own window by itself; opening it is the consent, so the answer leaves with it.
    const link = event.target.closest?.('a[data-accept]');
    if (link) {
      const form = link.closest('form');
      if (!$('[data-consent]', form).checked) { event.preventDefault(); return $('[data-consent]', form).focus(); }
      setTimeout(() => form.requestSubmit($('button[value=accept]', form)));
    }
    return undefined;
  });
  // Enter sends what it stands beside: in the fields of an error the error, on the box of consent nothing.
  document.addEventListener('keydown', (event) => {
    const card = event.key === 'Enter' && event.target.closest?.('.ask');
    if (!card || event.altKey || event.isComposing) return;
    let button = null;
    if (event.target.matches('[id$=-code], [id$=-why]')) button = $('button[value=fail]', card);
    else if (event.ctrlKey || event.metaKey) button = $('button.go[name=action]', card);
    else if (!event.target.matches('[data-consent]')) return;
    event.preventDefault();
    event.stopPropagation();
    button?.click();
  }, true);
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'n' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches?.('input:not([type=checkbox], [type=radio]), textarea, select')) return;
    event.preventDefault();
    next();
  });
})();
