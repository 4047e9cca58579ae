// A phone without an account: count-downs, and in a room the way from one question to the next. Without this script the
// form still sends, and a reload comes back to the same place.
const one = (selector) => document.querySelector(selector);
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
let offline = false;
let before = [];

const tick = () => {
  const place = one('#left');
  if (offline) {
    place.textContent = 'Waiting for the network';
  } else {
    const time = place.querySelector('time[data-deadline]');
    if (time) {
      const seconds = Math.max(0, Math.ceil((Date.parse(time.dataset.deadline) - Date.now()) / 1000));
      const strong = document.createElement('b');
      strong.textContent = clock(seconds);
      time.replaceChildren(strong, seconds ? ' left' : ' left, closing');
      place.classList.toggle('soon', seconds < 10);
    }
  }
  place.classList.toggle('off', offline);
  for (const bar of document.querySelectorAll('progress[data-deadline]')) {
    bar.value = Math.min(bar.max, Math.max(0, (Date.parse(bar.dataset.deadline) - Date.now()) / 1000));
  }
};

const online = (is) => {
  if (offline !== is) return;
  offline = !is;
  if (is) one('#left').replaceChildren(...before);
  else before = [...one('#left').childNodes];
  tick();
};

// What the server says this phone should see, in place of what it sees.
const show = (html) => {
  const page = new DOMParser().parseFromString(html, 'text/html');
  one('#main').replaceChildren(...page.querySelector('#main').childNodes);
  one('#left').replaceChildren(...page.querySelector('#left').childNodes);
  document.body.dataset.seen = page.body.dataset.seen ?? '';
  document.title = page.title;
  tick();
};

const send = async (form, button) => {
  const body = new URLSearchParams(new FormData(form, button));
  form.inert = true;
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      const answer = await fetch(location.pathname, { method: 'POST', body });
      online(true);
      show(await answer.text());
      scrollTo(0, 0);
      return;
    } catch {
      // The network is away: what was chosen stays, and leaves when it is back.
      online(false);
      await rest(wait);
    }
  }
};

const follow = async () => {
  const base = location.pathname;
  for (let wait = 500; ; ) {
    try {
      const seen = document.body.dataset.seen;
      const answer = await fetch(`${base}/now?seen=${encodeURIComponent(seen)}`, {
        headers: { accept: 'application/json' },
      });
      if (!answer.ok && answer.status !== 404) throw new Error('busy');
      const now = answer.status === 404 ? 'gone' : (await answer.json()).seen;
      online(true);
      if (now !== seen && now !== document.body.dataset.seen) {
        // All phones of a room hear it at once: they do not come at once.
        await rest(Math.random() * 700);
        // What this phone sends meanwhile is answered with where it is then.
        while (one('form[inert]')) await rest(200);
        if (document.body.dataset.seen === seen) {
          const page = await (await fetch(base)).text();
          if (document.body.dataset.seen === seen) show(page);
        }
      }
      if (now === 'gone') return;
      wait = 500;
    } catch {
      online(false);
      await rest(wait + Math.random() * wait);
      wait = Math.min(wait * 2, 8000);
    }
  }
};

if (document.body.dataset.seen !== undefined && document.body.dataset.seen !== 'gone') {
  document.addEventListener('submit', (event) => {
    event.preventDefault();
    send(event.target, event.submitter);
  });
  follow();
}
addEventListener('offline', () => online(false));
setInterval(tick, 500);
tick();
