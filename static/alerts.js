// A sound and a notification of the desktop when the server asks: one switch, off by default, remembered in this browser.
(() => {
  'use strict';
  const $ = (selector) => document.querySelector(selector);
  const KEY = 'parley-alerts';
  const SAID = 'parley-alerted';
  const read = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const write = (name, value) => { try { localStorage.setItem(name, value); } catch { /* not kept, then */ } };
  let on = read(KEY) === 'on';
  let audio = null;

  // Two short tones, made here: no file, nothing to fetch.
  const sound = () => {
    try {
      audio ||= new AudioContext();
      if (audio.state === 'suspended') audio.resume();
      [[660, 0], [880, 0.14]].forEach(([pitch, after]) => {
        const tone = audio.createOscillator();
        const loud = audio.createGain();
        const at = audio.currentTime + after;
        tone.frequency.value = pitch;
        loud.gain.setValueAtTime(0.0001, at);
        loud.gain.exponentialRampToValueAtTime(0.12, at + 0.02);
        loud.gain.exponentialRampToValueAtTime(0.0001, at + 0.22);
        tone.connect(loud).connect(audio.destination);
        tone.start(at);
        tone.stop(at + 0.25);
      });
    } catch { /* no sound here */ }
  };
  const allowed = () => 'Notification' in window && Notification.permission === 'granted';
  const notify = (card) => {
    if (!allowed() || document.visibilityState === 'visible') return;
    const kind = card.querySelector('.kind')?.textContent || 'An ask';
    const words = card.querySelector('.gist')?.textContent.slice(0, 200) || '';
    try {
      const note = new Notification(`${kind}: the server asks`, { body: words, tag: `parley ${$('#stream').dataset.base.split('/').pop()} ${card.id}` });
      note.onclick = () => { window.focus(); note.close(); };
    } catch { /* not from a page, on some phones */ }
  };

  const show = () => {
    const button = $('#alerts');
    if (!button) return;
    button.setAttribute('aria-pressed', String(on));
    const silent = on && 'Notification' in window && Notification.permission === 'denied';
    button.title = silent ? 'Sound only: this browser refuses notifications for this page' : 'A sound and a notification when the server asks';
    button.querySelector('span').textContent = on ? 'Alerts on' : 'Alerts off';
  };

  document.addEventListener('click', async (event) => {
    if (!event.target.closest?.('#alerts')) return;
    on = !on;
    write(KEY, on ? 'on' : 'off');
    show();
    if (!on) return;
    sound();
    if ('Notification' in window && Notification.permission === 'default') {
      await Notification.requestPermission().catch(() => 'denied');
      show();
    }
  });
  window.addEventListener('storage', (event) => {
    if (event.key === KEY) { on = event.newValue === 'on'; show(); }
  });

  document.addEventListener('DOMContentLoaded', () => {
    show();
    const list = $('#asks');
    if (!list) return;
    const known = new Set([...list.children].map((card) => card.id));
    new MutationObserver(() => {
      const fresh = [...list.children].filter((card) => card.dataset.s === 'open' && !known.has(card.id));
      for (const card of fresh) known.add(card.id);
      if (!on || !fresh.length) return;
      fresh.slice(-3).forEach(notify);
      // Several tabs and windows show the same ask: one of them makes the sound.
      if (Date.now() - +(read(SAID) || 0) < 1500) return;
      write(SAID, String(Date.now()));
      document.dispatchEvent(new CustomEvent('parley:alerted'));
      sound();
    }).observe(list, { childList: true });
  });
})();
