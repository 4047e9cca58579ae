// A sound and a notification of the desktop for a new ask: one switch, off by default, remembered in this browser.
import { $, base, browser, write } from './page.js';

const ALERTS = 'parley-alerts';
const SAID = 'parley-alerted';
const TONES = [
  { pitch: 660, after: 0 },
  { pitch: 880, after: 0.14 },
];
const TOGETHER = 1500;
let isOn = browser.get(ALERTS) === 'on';
let audio = null;

// Two short tones, made here: no file, nothing to fetch.
const sound = () => {
  try {
    audio ??= new AudioContext();
    if (audio.state === 'suspended') audio.resume();
    for (const { pitch, after } of TONES) {
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
    }
  } catch {
    // no sound here
  }
};
const permission = () => ('Notification' in window ? Notification.permission : 'none');
const notify = (card) => {
  if (permission() !== 'granted' || document.visibilityState === 'visible') return;
  const kind = $('.kind', card)?.textContent || 'An ask';
  const body = $('.gist', card)?.textContent.slice(0, 200) || '';
  try {
    const tag = `parley ${base().split('/').pop()} ${card.id}`;
    const note = new Notification(`${kind}: the server asks`, { body, tag });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  } catch {
    // not from a page, on some phones
  }
};
const showSwitch = () => {
  const button = $('#alerts');
  if (!button) return;
  button.setAttribute('aria-pressed', String(isOn));
  button.title =
    isOn && permission() === 'denied'
      ? 'Sound only: this browser refuses notifications for this page'
      : 'A sound and a notification when the server asks';
  write($('span', button), isOn ? 'Alerts on' : 'Alerts off');
};

document.addEventListener('click', async (event) => {
  if (!event.target.closest?.('#alerts')) return;
  isOn = !isOn;
  browser.set(ALERTS, isOn ? 'on' : 'off');
  showSwitch();
  if (!isOn) return;
  sound();
  if (permission() !== 'default') return;
  await Notification.requestPermission().catch(() => 'denied');
  showSwitch();
});
addEventListener('storage', (event) => {
  if (event.key !== ALERTS) return;
  isOn = event.newValue === 'on';
  showSwitch();
});
showSwitch();
const asks = $('#asks');
if (asks) {
  const known = new Set([...asks.children].map((card) => card.id));
  new MutationObserver(() => {
    const fresh = [...asks.children].filter((card) => card.dataset.s === 'open' && !known.has(card.id));
    for (const card of fresh) known.add(card.id);
    if (!isOn || !fresh.length) return;
    fresh.slice(-3).forEach(notify);
    // Several tabs and windows show the same ask: one of them makes the sound.
    if (Date.now() - +(browser.get(SAID) ?? 0) < TOGETHER) return;
    browser.set(SAID, String(Date.now()));
    document.dispatchEvent(new CustomEvent('parley:alerted'));
    sound();
  }).observe(asks, { childList: true });
}
