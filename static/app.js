// Small glue only: everything else is HTML from the server. No eval, no inline handlers, nothing kept but the theme.
(() => {
  'use strict';
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;

  // ---- theme: system, light, dark; the choice stays in this browser
  const THEMES = { system: 'follows the system', light: 'light', dark: 'dark' };
  const setTheme = (theme) => {
    if (theme === 'system') delete root.dataset.theme; else root.dataset.theme = theme;
    try { localStorage.setItem('parley-theme', theme); } catch { /* not kept, then */ }
    $('#theme')?.setAttribute('aria-label', `Theme: ${THEMES[theme]}`);
    const button = $('#theme');
    if (button) button.title = `Theme: ${THEMES[theme]}`;
  };
  const nextTheme = () => {
    const now = root.dataset.theme || 'system';
    setTheme({ system: 'light', light: 'dark', dark: 'system' }[now]);
  };

  // ---- toasts: what was refused and is visible nowhere else
  const toast = (text) => {
    const box = document.createElement('div');
    box.className = 'toast';
    box.textContent = text;
    $('#toasts').append(box);
  };
  const said = (text) => {
    const found = new DOMParser().parseFromString(text || '', 'text/html').querySelector('[data-message]');
    return found?.dataset.message;
  };

  // ---- the stream, and the gaps that hx-sse 4.0.0 leaves open
  const stream = () => $('#stream');
  let lastId = '', parked = false, over = false, tries = 0, poll;
  const pill = (state, text) => {
    const el = $('#pill');
    if (!el || el.dataset.state === state && el.textContent === text) return;
    el.dataset.state = state;
    el.textContent = text;
  };
  const streamUrl = () => {
    const url = new URL(stream().getAttribute('hx-sse:connect'), location.href);
    // A connection made by hand has no Last-Event-ID, so the address carries it.
    if (lastId) url.searchParams.set('since', lastId);
    return url.pathname + url.search;
  };
  const open = () => { parked = false; clearInterval(poll); htmx.ajax('GET', streamUrl(), { source: stream() }); };
  const isStream = (event) => event.target?.id === 'stream';

  document.addEventListener('htmx:sse:after:connection', () => { tries = 0; pill('live', 'live'); });
  document.addEventListener('htmx:sse:before:connection', (event) => {
    if (event.detail.connection.attempt) pill('wait', 'reconnecting');
  });
  document.addEventListener('htmx:sse:error', (event) => {
    const status = event.detail.status;
    if (status === 401) return stop('out');
    if (status === 404) return stop('closed');
    pill('off', 'reconnecting');
  });
  // Not `hx-sse:close`: that aborts a fetch that is still being read, and each time the console shows an error.
  const noReconnect = () => { const sse = stream()?._htmx?.sse; if (sse) sse.config.reconnect = false; };
  // What ended this page, in a word for the pill, and in a strip with what to do next.
  const ENDS = {
    closed: ['closed', 'This session is closed.', 'What is shown is what was last known. What you type here goes nowhere.', 'To the first page'],
    stopped: ['stopped', 'Parley has stopped.', 'This session ended with it. What is shown stays until you leave the page.', ''],
    again: ['started again', 'Parley was started again.', 'This session ended with the old one. Open the address that the terminal printed; what is shown stays until you leave the page.', 'To the first page'],
    out: ['signed out', 'You are signed out.', 'Open the address that the terminal printed, then come back to this page.', 'Try again'],
  };
  const stop = (why) => {
    over = true;
    noReconnect();
    const [word, head, rest, way] = ENDS[why];
    pill('off', word);
    $('.ended')?.remove();
    const strip = document.createElement('div'), text = document.createElement('p'), strong = document.createElement('b');
    strip.className = 'ended';
    strip.dataset.why = why;
    strip.setAttribute('role', 'alert');
    strong.textContent = head;
    text.append(strong, ` ${rest}`);
    strip.append(text);
    if (way) {
      const link = document.createElement('a');
      link.className = 'btn';
      link.href = why === 'out' ? location.href : root.dataset.root;
      link.textContent = way;
      strip.append(link);
    }
    $('.top').after(strip);
    if (why === 'stopped') setTimeout(lookAgain, 2000);
  };
  // Parley has stopped: this tab looks now and then whether it is back, and says so.
  const lookAgain = async () => {
    try {
      if (!document.hidden && (await fetch('/healthz')).ok) return stop('again');
    } catch { /* not yet */ }
    return setTimeout(lookAgain, 4000);
  };
  // In a burst one message per frame: the tab stays responsive, and the unread rest pushes back over TCP.
  let swapped = 0, earlier = 0;
  document.addEventListener('htmx:sse:after:message', () => { earlier = swapped; swapped = performance.now(); });
  document.addEventListener('htmx:sse:before:message', (event) => {
    lastId = event.detail.message.id || lastId;
    // Two in a row are no burst, when the second is small: a call and its result.
    const small = event.detail.message.data.length < 16384;
    if (performance.now() - (small ? earlier : swapped) > 40) return;
    event.detail.waitUntil(new Promise((done) => {
      const late = setTimeout(done, 100);
      requestAnimationFrame(() => { clearTimeout(late); setTimeout(done); });
    }));
  });
  // The extension does not retry the first connect.
  const retryFirst = (event) => {
    if (!isStream(event) || over || parked || stream()._htmx?.sse) return;
    const status = event.detail?.ctx?.response?.status;
    if (status === 401) return stop('out');
    if (status === 404) return stop('closed');
    pill('off', 'reconnecting');
    setTimeout(() => { if (!over && !parked && !stream()._htmx?.sse) open(); }, Math.min(15000, 500 * 2 ** tries++));
  };
  document.addEventListener('htmx:error', retryFirst);
  document.addEventListener('htmx:response:error', retryFirst);
  // The last word of a stream: too many tabs, the session is closed, or Parley stops.
  document.addEventListener('bye', (event) => {
    const why = event.detail?.data;
    if (why === 'closed') return stop('closed');
    if (why === 'shutdown') return stop('stopped');
    parked = true;
    noReconnect();
    pill('wait', 'paused: many tabs are open');
    poll = setInterval(count, 15000);
  });
  const resume = () => {
    if (parked && !over && !document.hidden && stream() && !stream()._htmx?.sse) { pill('wait', 'reconnecting'); open(); }
  };
  const count = async () => {
    try {
      const answer = await fetch(`${stream().dataset.base}/inbox?count=1`);
      if (answer.ok) setTitle(+(await answer.text()));
    } catch { /* the next round tries again */ }
  };
  addEventListener('focus', resume);
  document.addEventListener('visibilitychange', resume);
  document.addEventListener('pointerdown', resume);
  document.addEventListener('keydown', resume);

  // ---- refusals
  document.addEventListener('htmx:response:error', (event) => {
    const ctx = event.detail.ctx, status = ctx?.response?.status;
    if (isStream(event) || status === 422) return;
    toast(said(ctx?.text) || (status === 401 ? 'Not sent: you are signed out.' : `Not sent: the answer was ${status}.`));
  });
  document.addEventListener('htmx:error', (event) => {
    if (!isStream(event)) toast('Not sent: Parley could not be reached.');
  });
  document.addEventListener('htmx:before:request', () => { const box = $('#form-error'); if (box) box.replaceChildren(); });

  // ---- focus: a button is disabled while its request is under way, and a form may come back anew; a keyboard must
  // not lose its place by that
  let place = null;
  const remember = (event) => {
    const el = document.activeElement;
    if (el && el !== document.body && event.target.contains?.(el)) place = { el, id: el.id, card: el.closest('.ask')?.id, until: performance.now() + 5000 };
  };
  const giveBack = () => setTimeout(() => {
    if (!place || performance.now() > place.until || document.activeElement !== document.body) return;
    const { el, id, card } = place;
    const twin = el.isConnected ? el : id && document.getElementById(id);
    const next = twin && !twin.matches(':disabled') && twin.checkVisibility() ? twin : card && $(`#${CSS.escape(card)} summary`);
    if (!next) return;
    // A card may be drawn anew once more, when its answer has left.
    place.el = next;
    next.focus({ preventScroll: true });
  });
  document.addEventListener('submit', remember, true);
  document.addEventListener('click', remember, true);
  document.addEventListener('htmx:after:swap', giveBack);
  document.addEventListener('htmx:finally:request', giveBack);
  document.addEventListener('pointerdown', () => { place = null; }, true);
  document.addEventListener('focusin', (event) => { if (event.target !== place?.el) place = null; });

  // ---- the number that waits, in the title
  const title = document.title;
  const setTitle = (n = +($('#waiting')?.dataset.n || 0)) => { document.title = n ? `(${n}) ${title}` : title; };

  // ---- log: cap, stick to the newest, count what is new, filter
  const CAP = 1000;
  let stick = true, seen = 0;
  const log = () => $('#log'), box = () => $('#logscroll');
  const newest = () => +(shownRows()?.lastElementChild?.id.slice(1) || 0);
  // The server filters, in a list beside #log: this tab asks again whenever rows arrive, one question at a time.
  let query = '', asking = false, again = '', pause = 0;
  const found = () => $('#found');
  const shownRows = () => query ? found() : log();
  const rowsIn = ':is(#log, #found)';
  const wanted = () => {
    const form = $('#log-filter'), params = new URLSearchParams();
    for (const [name, value] of form ? new FormData(form) : [['q', $('#logfilter')?.value || '']]) if (value.trim()) params.set(name, value.trim());
    return params.toString();
  };
  const listen = () => {
    for (const el of [found(), $('#earlier-found'), $('#found-empty')]) if (el) el.hidden = !query;
    for (const el of [log(), $('#earlier'), $('#log-empty')]) if (el) el.hidden = !!query;
  };
  const ask = async (how) => {
    if (asking) { again = again === 'fresh' ? again : how; return; }
    asking = true;
    const of = query, began = performance.now(), mark = $('#found-mark')?.dataset.seq;
    const place = how === 'newer' && mark ? `&after=${mark}` : how.startsWith('before=') ? `&${how}` : '';
    try {
      await htmx.ajax('GET', `${stream().dataset.base}/log?${of}${place}`, { source: $('#logscroll'), swap: 'none' });
    } catch { /* the next row asks again */ }
    if (!query) found().replaceChildren();
    listen();
    if (stick) { trim(found()); toNewest(); }
    select();
    // Never more than a third of the time is spent on a filter, however many rows arrive.
    pause = Math.max(120, 2 * (performance.now() - began));
    setTimeout(() => { asking = false; const next = again; again = ''; if (next && query) ask(next); }, of === query ? pause : 0);
  };
  const refilter = () => {
    const now = wanted();
    if (now === query) return;
    query = now;
    if ($('#log-filter')) history.replaceState(null, '', `${stream().dataset.base}/log${query && `?${query}`}`);
    if (!query && $('#log-matching')) $('#log-matching').textContent = '';
    if (query) ask('fresh');
    listen();
    if (!query) { found().replaceChildren(); select(); }
    if (stick) toNewest();
  };
  const trim = (rows) => {
    const extra = rows.childElementCount - CAP;
    if (extra <= 50) return false;
    const range = document.createRange();
    range.setStartBefore(rows.firstElementChild);
    range.setEndBefore(rows.children[extra]);
    range.deleteContents();
    return true;
  };
  // ---- a run of polls (the same question and its replies, again and again) is one line, until it is opened
  const RUN = 6;
  const foldRun = (head, run) => {
    const open = head?.dataset.open !== undefined;
    if (run.length < RUN) head?.remove();
    else {
      if (!head) {
        head = document.createElement('li');
        head.className = 'polls';
        const button = document.createElement('button');
        button.type = 'button';
        button.className = 'm';
        for (const name of ['q', 'at', 'lane', 'meth', 'peek', 'z', 'z sz']) { const s = document.createElement('span'); s.className = name; button.append(s); }
        head.append(button);
      }
      if (head.nextElementSibling !== run[0]) run[0].before(head);
      const asked = run.filter((row) => row.dataset.k === 'request').length, button = head.firstElementChild;
      const last = run[run.length - 1];
      head.id = `p${run[0].id.slice(1)}`;
      button.setAttribute('aria-expanded', String(open));
      for (const [name, text] of [['at', $('time', last).textContent], ['meth', run[0].dataset.poll], ['peek', `${asked} times, messages ${run[0].id.slice(1)} to ${last.id.slice(1)}. ${open ? 'Fold' : 'Show'} them`]]) write($(`.${name}`, button), text);
    }
    for (const row of run) row.hidden = run.length >= RUN && !open;
  };
  const foldPolls = () => {
    const rows = log();
    if (!$('[data-poll], .polls', rows)) return;
    let run = [], head = null, what = '';
    for (const row of [...rows.children]) {
      if (row.className === 'polls') {
        // A head in the middle: earlier rows were put before it, and they have their own.
        if (run.length && row.nextElementSibling?.dataset.poll === what) { row.remove(); continue; }
        if (run.length || head) foldRun(head, run);
        [run, head, what] = [[], row, ''];
        continue;
      }
      const poll = row.dataset.poll || '';
      if (run.length && poll !== what) { foldRun(head, run); [run, head] = [[], null]; }
      if (poll) { run.push(row); what = poll; } else if (head) { head.remove(); head = null; }
    }
    if (run.length || head) foldRun(head, run);
  };
  const toNewest = () => { const b = box(); if (b) b.scrollTop = b.scrollHeight; seen = newest(); };
  const onRows = (records) => {
    if (query) {
      // A row that is drawn anew has a finding now: what matches may have changed behind the mark.
      const mark = +($('#found-mark')?.dataset.seq || 0);
      const old = records.some((record) => [...record.addedNodes].some((row) => row.id && +row.id.slice(1) <= mark));
      ask(old ? 'fresh' : 'newer');
    }
    foldPolls();
    if ((stick || query) && trim(log())) offerEarlier();
    if (stick) toNewest();
    jump();
  };
  const offerEarlier = () => {
    const first = log().firstElementChild?.id.slice(1), slot = $('#earlier'), base = stream()?.dataset.base;
    if (!first || !slot || !base) return;
    let button = $('button', slot);
    if (!button) {
      button = document.createElement('button');
      button.type = 'button';
      button.className = 'm more2';
      button.setAttribute('hx-swap', 'none');
      for (const name of ['', '', 'lane', 'ours']) { const s = document.createElement('span'); s.className = name; button.append(s); }
      button.lastElementChild.textContent = 'Show earlier messages';
      slot.append(button);
    }
    button.removeAttribute('hx-get');
    button.dataset.before = first;
  };
  const jump = () => {
    const button = $('#jump');
    if (!button) return;
    const unseen = newest() > seen ? [...shownRows().children].filter((row) => +row.id.slice(1) > seen).length : 0;
    button.hidden = stick || !unseen;
    if (!button.hidden) button.textContent = `${unseen} new, jump to the newest`;
  };
  // Following: the newest row stays in sight. Scrolling up ends it, scrolling down resumes it, unless it was switched off.
  let follows = true;
  const atEnd = () => { const b = box(); return b.scrollHeight - b.scrollTop - b.clientHeight < 40; };
  const setStick = (now) => {
    stick = now;
    const button = $('#follow');
    if (!button) return;
    button.setAttribute('aria-pressed', String(stick));
    $('span', button).textContent = stick ? 'Following' : 'Follow';
  };

  // ---- one message, opened beside the rows; on a narrow page the link goes to its own page instead
  const select = () => {
    for (const old of $$(`${rowsIn} .m:is([aria-current], .pair)`)) { old.removeAttribute('aria-current'); old.classList.remove('pair'); }
    const shown = $('#message');
    $('#logsplit')?.toggleAttribute('data-open', !!shown);
    if (!shown) return;
    for (const seq of shown.dataset.seqs.trim().split(' ')) for (const row of $$(`:is(#m${CSS.escape(seq)}, #f${CSS.escape(seq)}) > .m`)) row.classList.add('pair');
    for (const current of $$(`:is(#m${CSS.escape(shown.dataset.seq)}, #f${CSS.escape(shown.dataset.seq)}) > .m`)) {
      current.classList.remove('pair');
      current.setAttribute('aria-current', 'true');
    }
  };
  const fetchMessage = async (href) => {
    await htmx.ajax('GET', href, { source: $('#detail'), target: '#detail', swap: 'innerHTML' });
    select();
  };
  const openMessage = async (link) => {
    await fetchMessage(link.getAttribute('href'));
    // On the log's own page the address says which message is open, and back closes it.
    if ($('#log-filter') && !query) history.pushState({ message: link.getAttribute('href') }, '', link.getAttribute('href'));
    if (stick) toNewest(); else link.scrollIntoView({ block: 'nearest' });
  };
  const closeMessage = () => {
    const current = $('.m[aria-current]', shownRows());
    $('#detail').replaceChildren();
    select();
    current?.focus();
    if ($('#log-filter') && !query) history.pushState({ message: '' }, '', `${stream().dataset.base}/log`);
  };
  addEventListener('popstate', (event) => {
    if (!$('#log-filter')) return;
    const href = event.state?.message ?? (/\/log\/\d+$/.test(location.pathname) ? location.pathname : '');
    if (href) fetchMessage(href); else { $('#detail').replaceChildren(); select(); }
  });

  // ---- a call that this page makes comes into sight: below a long form nobody would see that something happens
  let called = -Infinity;
  const reveal = (card) => {
    const head = $('header', card) || card, at = head.getBoundingClientRect(), room = $('#main').getBoundingClientRect();
    if (at.top < Math.max(0, room.top) || at.bottom + 48 > Math.min(innerHeight, room.bottom)) head.scrollIntoView({ block: 'center' });
  };
  document.addEventListener('htmx:before:request', (event) => {
    if (/\/(call|get|read|compose|retry)(\/|$)/.test(String(event.detail?.ctx?.request?.action).split('?')[0])) called = performance.now();
  });

  // ---- count-downs and running times: the server says a moment once, the tab counts
  const two = (n) => String(n).padStart(2, '0');
  const span = (s) => s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
  const write = (el, text) => { if (el.textContent !== text) el.textContent = text; };
  const tick = () => {
    const now = Date.now();
    for (const el of $$('time[data-deadline]')) {
      const s = Math.max(0, Math.ceil((Date.parse(el.dataset.deadline) - now) / 1000));
      write(el, s ? `${span(s)} ${el.dataset.after}` : 'time is up');
      el.parentElement.classList.toggle('soon', s < 20);
    }
    for (const el of $$('time[data-since]')) write(el, `${Math.max(0, Math.floor((now - Date.parse(el.dataset.since)) / 1000))} s`);
  };

  // ---- a command line, split as the server will split it
  const split = (line) => {
    const found = [];
    let word = null, quote = '', escaped = false;
    for (const c of line) {
      if (escaped) { word = (word ?? '') + (quote === '"' && !'"\\'.includes(c) ? '\\' + c : c); escaped = false; }
      else if (c === '\\' && quote !== "'") { escaped = true; word ??= ''; }
      else if (quote) { if (c === quote) quote = ''; else word += c; }
      else if (c === '"' || c === "'") { quote = c; word ??= ''; }
      else if (/\s/.test(c)) { if (word !== null) found.push(word); word = null; }
      else word = (word ?? '') + c;
    }
    if (quote || escaped) return null;
    if (word !== null) found.push(word);
    return found;
  };
  const showSplit = () => {
    const input = $('#command_line'), out = $('#argv');
    if (!input || !out || !input.value.trim()) return;
    const parts = split(input.value), lead = document.createElement('span');
    lead.className = 'dim';
    lead.textContent = parts ? 'runs as' : 'a quotation mark is still open';
    out.replaceChildren(lead, ...(parts || []).map((part) => {
      const chip = document.createElement('code');
      chip.className = 'chip';
      chip.textContent = part || '(empty)';
      return chip;
    }));
  };

  document.addEventListener('DOMContentLoaded', () => {
    setTheme(root.dataset.theme || 'system');
    setTitle();
    showSplit();
    const rows = log(), scroll = box();
    if (rows) {
      foldPolls();
      new MutationObserver(onRows).observe(rows, { childList: true });
      scroll.addEventListener('scroll', () => {
        setStick(follows && atEnd());
        if (atEnd()) seen = newest();
        jump();
      }, { passive: true });
      query = wanted();
      listen();
      if (query) ask('fresh');
      if ($('#message')) {
        select();
        $('#log .m[aria-current]')?.scrollIntoView({ block: 'center' });
        setStick(atEnd());
        seen = newest();
      } else toNewest();
    }
    const waiting = $('.top');
    if (waiting) new MutationObserver(() => setTitle()).observe(waiting, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-n'] });
    if ($('#calls')) new MutationObserver((changes) => {
      const card = changes.flatMap((change) => [...change.addedNodes]).find((node) => node.matches?.('.call'));
      if (card && performance.now() - called < 5000) { called = -Infinity; reveal(card); }
    }).observe($('#calls'), { childList: true });
    const calls = $('#calls[data-cap]');
    if (calls) new MutationObserver(() => { while (calls.childElementCount > +calls.dataset.cap) calls.lastElementChild.remove(); }).observe(calls, { childList: true });
    // By hand: htmx starts before a slow hx-sse script has registered, and then never looks at the element again.
    if (stream()) open();
    setInterval(tick, 500);
    tick();
    new MutationObserver(tick).observe($('#main'), { childList: true, subtree: true });
    $('.rail nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    try { if (sessionStorage.getItem('parley-log') === 'folded') fold(true); } catch { /* open, then */ }
  });

  const fold = (folded) => {
    const drawer = $('#drawer'), button = $('#fold');
    if (!drawer) return;
    drawer.toggleAttribute('data-folded', folded);
    button.setAttribute('aria-expanded', String(!folded));
    button.textContent = folded ? 'Unfold' : 'Fold';
    try { sessionStorage.setItem('parley-log', folded ? 'folded' : ''); } catch { /* not kept */ }
    if (!folded && stick) toNewest();
  };

  document.addEventListener('click', (event) => {
    const at = (selector) => event.target.closest?.(selector);
    if (at('#theme')) return nextTheme();
    if (at('#fold')) return fold(!$('#drawer').hasAttribute('data-folded'));
    if (at('#jump')) { follows = true; setStick(true); toNewest(); return jump(); }
    if (at('#follow')) { follows = !stick; setStick(follows); if (stick) toNewest(); return jump(); }
    const before = at('[data-before]');
    if (before) { setStick(false); return htmx.ajax('GET', `${stream().dataset.base}/log?before=${+before.dataset.before}`, { source: before, swap: 'none' }); }
    const foundBefore = at('[data-found-before]');
    if (foundBefore) { setStick(false); return ask(`before=${+foundBefore.dataset.foundBefore}`); }
    const add = at('[data-add]');
    if (add) {
      const list = $('[data-rows]', add.closest('fieldset, form')), row = list.lastElementChild.cloneNode(true);
      for (const input of $$('input', row)) input.value = '';
      list.append(row);
      return $('input', row).focus();
    }
    const polls = at('.polls');
    if (polls) { polls.toggleAttribute('data-open'); setStick(false); return foldPolls(); }
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
    const row = at(`${rowsIn} a.m`);
    if (row && plain && $('#detail') && matchMedia('(min-width: 70rem)').matches) { event.preventDefault(); return openMessage(row); }
    if (at('#detail-close') && plain && $('#log')) { event.preventDefault(); closeMessage(); }
  });
  let typing;
  document.addEventListener('input', (event) => {
    if (event.target.matches?.('#logfilter, #log-filter :is(input, select)')) { clearTimeout(typing); typing = setTimeout(refilter, 120); }
    if (event.target.id === 'command_line') showSplit();
    if (event.target.dataset?.filter) {
      const words = event.target.value.trim().toLowerCase().split(/\s+/);
      for (const item of $(event.target.dataset.filter)?.children || []) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
    }
  });
  // A form that goes to another page goes once, however often its button is pressed until that page is there.
  const gone = new WeakMap();
  document.addEventListener('submit', (event) => {
    const form = event.target;
    if (form.id === 'log-filter') { event.preventDefault(); return refilter(); }
    if (form.method !== 'post' || form.hasAttribute('hx-post') || event.defaultPrevented) return undefined;
    if (performance.now() - (gone.get(form) ?? -Infinity) < 3000) event.preventDefault();
    else gone.set(form, performance.now());
    return undefined;
  });
  addEventListener('pageshow', (event) => { if (event.persisted) for (const form of document.forms) gone.delete(form); });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && event.target.matches?.('textarea')) {
      event.preventDefault();
      return event.target.form?.requestSubmit();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && $('#message') && $('#logsplit')) return closeMessage();
    if (event.target.matches?.('input, textarea, select')) return;
    if (event.key === '/' && $('#logfilter')) { event.preventDefault(); fold(false); $('#logfilter').focus(); }
  });
  document.addEventListener('animationend', (event) => { if (event.animationName === 'go') event.target.remove(); });
})();
