// How a stretch of time is written while it runs.

const two = (n) => String(n).padStart(2, '0');

/** Whole seconds as 0:05, 12:40 or 1:00:00. */
export const clock = (seconds) => {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  return hours ? `${hours}:${two(minutes % 60)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
};
/** Seconds until a moment, never less than none; a bar moves by parts of them. */
export const left = (moment, now) => Math.max(0, (Date.parse(moment) - now) / 1000);
/** Whole seconds since a moment. */
export const since = (moment, now) => Math.max(0, Math.floor((now - Date.parse(moment)) / 1000));
/** From here on a count-down is shown as urgent. */
export const SOON = 20;
