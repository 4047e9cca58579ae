// Before the first paint, so that nothing flashes: what this browser chose last. The theme and the clock; whether an empty
// inbox stands open; whether the log is folded, and how tall it is.
try {
  const root = document.documentElement;
  const theme = localStorage.getItem('parley-theme');
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
  const isLocal = localStorage.getItem('parley-clock') !== 'utc' && new Date().getTimezoneOffset();
  if (isLocal) root.dataset.clock = 'local';
  if (localStorage.getItem('parley-inbox') === 'open') root.dataset.inbox = 'open';
  if (localStorage.getItem('parley-log') === 'folded') root.dataset.log = 'folded';
  const drawer = Number(localStorage.getItem('parley-drawer'));
  if (drawer > 0) root.style.setProperty('--drawer', `min(${drawer}px, 75dvh)`);
} catch {
  /* storage is off: the system decides */
}
