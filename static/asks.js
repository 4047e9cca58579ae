// Asks in the page: what was typed stays, a settled card says so and takes no more, and the keyboard finds the next one.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const session = () => $('#stream')?.dataset.base || '';

  // ---- drafts: unsent text, kept in this tab by ask
  // A draft belongs to its session, not to the path below which this browser sees it.
  const key = (ask) => `parley-draft ${session().slice(document.documentElement.dataset.root.length - 1)} ${ask}`;
  const fields = (card) => $$('input[name], select[name], textarea[name]', card).filter((one) => one.type !== 'hidden' && !['force', 'consent'].includes(one.name));
  // How a card was when it came: a form that is shown again with its errors has what was typed as its defaults.
  const firsts = new Map();
  const initially = (one) => {
    if (one.type === 'checkbox' || one.type === 'radio') return one.defaultChecked;
    if (one.tagName === 'SELECT') return ([...one.options].find((option) => option.defaultSelected) || one.options[0])?.value ?? '';
    return one.defaultValue;
  };
  const meet = (card) => {
    if (!firsts.has(card.dataset.ask)) firsts.set(card.dataset.ask, new Map(fields(card).map((one) => [one.id, initially(one)])));
  };
  const touched = (one, first) => (one.type === 'checkbox' || one.type === 'radio' ? one.checked : one.value) !== (first?.get(one.id) ?? initially(one));
  const labelled = (one) => (one.labels?.[0]?.childNodes[0]?.textContent || one.name).trim();
  const valueOf = (one) => {
    if (one.type === 'checkbox') return one.checked ? 'yes' : 'no';
    return one.tagName === 'SELECT' ? [...one.selectedOptions].map((option) => option.text).join(', ') : one.value;
  };
  // What a person would want back: the one text they wrote, or each field with its label.
  const words = (card) => {
    const first = firsts.get(card.dataset.ask);
    const mine = fields(card).filter((one) => touched(one, first) && (one.type !== 'radio' || one.checked));
    if (mine.length === 1 && mine[0].tagName === 'TEXTAREA') return mine[0].value;
    return mine.map((one) => `${labelled(one)}: ${valueOf(one)}`).join('\n');
  };
  const kept = (ask) => { try { return JSON.parse(sessionStorage.getItem(key(ask))); } catch { return null; } };
  const keep = (card) => {
    const values = fields(card).filter((one) => !one.name.startsWith('edit-') || one.value !== one.defaultValue).map((one) => [one.id, ['checkbox', 'radio'].includes(one.type) ? one.checked : one.value]);
    try { sessionStorage.setItem(key(card.dataset.ask), JSON.stringify({ values, words: words(card) })); } catch { /* not kept, then */ }
  };
  const restore = (card) => {
    meet(card);
    for (const [id, value] of kept(card.dataset.ask)?.values || []) {
      const one = id && document.getElementById(id);
      // The form to edit a request is fetched when it is opened: what was typed in it must not be forgotten there.
      if (!one && id.includes('-edit-')) $('details.edit', card)?.setAttribute('open', '');
      if (!one || !card.contains(one)) continue;
      if (['checkbox', 'radio'].includes(one.type)) one.checked = value; else one.value = value;
    }
  };
  const forget = (ask) => { try { sessionStorage.removeItem(key(ask)); } catch { /* nothing there */ } };
  // Drafts of asks that this session no longer shows.
  const prune = () => {
    const start = key('');
    for (const one of Object.keys(sessionStorage)) {
      if (one.startsWith(start) && !document.getElementById(`ask-${one.slice(start.length)}`)) sessionStorage.removeItem(one);
    }
  };

  // ---- a card whose ask is settled: what was typed stays readable, and takes no more
  const settle = (card) => {
    const word = $('[data-settled]', card)?.dataset.settled;
    const set = $('fieldset.plain-set', card);
    if (set) set.disabled = word !== undefined;
    if (!word || word === 'sending') return;
    card.dataset.s = word;
    card.removeAttribute('hx-morph-skip');
    for (const one of $$('time[data-deadline], time[data-since]', card)) one.replaceWith(word);
    for (const bar of $$('progress.ttl', card)) bar.remove();
    offer(card);
  };
  const offer = (card) => {
    const text = $('form.in', card) ? words(card) : kept(card.dataset.ask)?.words || '';
    const button = $('[data-copy-typed]', card);
    if (!button || !text) return;
    button.hidden = false;
    button.dataset.words = text;
    if ($('form.in', card)) return;
    $('[data-typed] pre', card).textContent = text;
    $('[data-typed]', card).hidden = false;
  };
  const count = () => {
    const [number, many] = [$('#n-settled'), String($$('#settled > li').length)];
    if (number && number.textContent !== many) number.textContent = many;
    if (number) $('#past').hidden = many === '0';
  };
  const look = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const card = node.closest('.ask');
    if (card && node.matches?.('[data-settled]')) return settle(card);
    if (card && node.matches?.('.edit-fields > *')) return restore(card);
    for (const one of node.matches?.('.ask') ? [node] : $$('.ask', node)) {
      if (one.dataset.s !== 'open') { offer(one); continue; }
      const fresh = !firsts.has(one.dataset.ask);
      restore(one);
      if (fresh) tuck([one]);
    }
    return undefined;
  };
  // The whole list came anew, and an ask is no longer in it: it was settled meanwhile. What was typed in its card must
  // not go with the card.
  const rescue = (node) => setTimeout(() => {
    const list = $('#asks');
    const id = node.dataset.ask;
    if (!list || node.dataset.away || $(`#ask-${CSS.escape(id)}`, list)) return;
    if (!kept(id)?.words) return;
    const twin = $(`#settled > #ask-${CSS.escape(id)}`);
    if (twin) {
      offer(twin);
      $('details', twin).open = true;
      list.append(twin);
      return;
    }
    $('.ask-state', node).innerHTML = '';
    const line = document.createElement('p');
    line.className = 'dim';
    line.dataset.settled = 'settled';
    line.textContent = 'This was settled meanwhile. What you had typed stays below.';
    list.append(node);
    $('.ask-state', node).append(line);
  }, 150);
  const putAway = (card) => {
    card.dataset.away = '1';
    card.remove();
    if (!$('#settled')) return;
    window.htmx.ajax('GET', `${session()}/asks/${card.dataset.ask}`, { target: '#settled', swap: 'afterbegin' }).then(() => {
      const back = $(`#settled > #ask-${CSS.escape(card.dataset.ask)}`);
      if (back) $('details', back).open = false;
      $('#next-ask')?.checkVisibility() ? $('#next-ask').focus() : $('#inbox-title')?.focus();
    });
  };

  // ---- on a narrow page the inbox stands above the page: one ask is open there, the others wait folded
  const tuck = (cards) => {
    if (!matchMedia('(max-width: 70rem)').matches) return;
    for (const card of cards) {
      const before = $$('.app > .inbox #asks > .ask[data-s=open]').indexOf(card);
      if (before > 0 && !kept(card.dataset.ask) && !card.contains(document.activeElement)) $('details', card).open = false;
    }
  };

  // ---- the next ask, by key or button
  const firstIn = (card) => $$('.in :is(input:not([type=hidden]), select, textarea, button)', card).find((one) => one.checkVisibility()) || $('summary', card);
  const next = () => {
    const open = $$('#asks .ask[data-s=open]');
    if (!open.length) return;
    const now = open.findIndex((card) => card.contains(document.activeElement));
    const card = open[(now + 1) % open.length];
    $('details', card).open = true;
    firstIn(card).focus();
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
    for (const card of $$('.ask')) if (card.dataset.s === 'open') restore(card); else offer(card);
    if ($('#asks')) prune();
    if (!location.hash.startsWith('#ask-')) tuck($$('#asks > .ask[data-s=open]'));
    for (const list of $$('#inbox, #main')) {
      new MutationObserver((changes) => {
        for (const change of changes) {
          for (const node of change.addedNodes) look(node);
          for (const node of change.removedNodes) if (node.matches?.('#asks > .ask, .ask') && change.target.id === 'asks') rescue(node);
        }
        count();
      }).observe(list, { childList: true, subtree: true });
    }
    setInterval(tick, 500);
    tick();
  });
  document.addEventListener('input', (event) => {
    const card = event.target.closest?.('.ask');
    if (card) keep(card);
  });
  document.addEventListener('htmx:after:request', (event) => {
    const card = event.target.closest?.('.ask');
    const { ctx } = event.detail || {};
    if (!card || ctx?.response?.status !== 200) return;
    // This tab has sent it: there is no draft any more. A request that was edited is kept by Parley itself.
    if (String(ctx.request?.action).endsWith('/answer')) forget(card.dataset.ask);
    if (String(ctx.request?.action).endsWith('/request')) {
      for (const one of $$('[name^=edit-]', card)) { one.value = one.defaultValue; firsts.get(card.dataset.ask)?.delete(one.id); }
      keep(card);
    }
  });
  document.addEventListener('click', (event) => {
    if (event.target.closest?.('#next-ask')) return next();
    // The count leads to the inbox of this page where there is one to be seen, else to the page of the inbox.
    if (event.target.closest?.('#waiting') && !event.ctrlKey && !event.metaKey && $('#inbox')?.checkVisibility()) {
      event.preventDefault();
      if ($('#asks .ask[data-s=open]')) return next();
      return $('#inbox-title').focus();
    }
    const away = event.target.closest?.('[data-put-away]');
    if (away) return putAway(away.closest('.ask'));
    const copy = event.target.closest?.('[data-copy-typed]');
    if (copy) {
      return navigator.clipboard.writeText(copy.dataset.words).then(
        () => { copy.textContent = 'Copied'; },
        () => { copy.textContent = 'The browser does not allow copying'; },
      );
    }
    const to = event.target.closest?.('[data-to-ask]');
    const card = to && document.getElementById(`ask-${to.dataset.toAsk}`);
    if (card) {
      event.preventDefault();
      $('details', card).open = true;
      card.scrollIntoView({ block: 'nearest' });
      return firstIn(card).focus();
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
    else if (event.target.matches('input[name^=edit-]')) button = $('[data-edit=save]', card);
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
