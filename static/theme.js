// Before the first paint, so that nothing flashes: the theme this browser chose last.
try {
  const theme = localStorage.getItem('parley-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  /* storage is off: the system decides */
}
