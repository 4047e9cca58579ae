// The arithmetic of the timeline: windows and marks. No page, so Node tests it.
const TICKS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
  14400, 43200, 86400,
];
export const tick = (seconds, most = 8) => TICKS.find((step) => seconds / step <= most) ?? seconds / most;

/** A moment of the axis: 0:30, 1:02:00, or 2.5 s where the marks are closer than a second, 12 ms where they are closest. */
export const moment = (seconds, step) => {
  if (step < 0.01) return `${Math.round(seconds * 1000)} ms`;
  if (step < 1) return `${seconds.toFixed(step < 0.1 ? 2 : 1)} s`;
  const all = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (number) => String(number).padStart(2, '0');
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
};

/** How long, as the rest of Parley says it. */
export const lasting = (ms) => {
  if (ms < 1) return ms > 0 ? '<1 ms' : '0 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 90000) return `${Math.round(ms / 100) / 10} s`;
  const all = Math.round(ms / 1000);
  const minutes = Math.floor(all / 60);
  return minutes < 90 ? `${minutes} min ${all % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

/** A window of seconds inside [0, whole], of a length that is neither too short nor too long. */
export const fitted = (from, to, whole) => {
  const least = Math.max(whole / 2000, 0.005);
  const wide = Math.min(Math.max(to - from, least), whole);
  const start = Math.min(Math.max(from, 0), whole - wide);
  return [start, start + wide];
};

/** The window after a zoom by a factor around a point of it, which stays where it is. */
export const zoomed = ([from, to], factor, around, whole) => {
  const wide = (to - from) * factor;
  const share = to > from ? (around - from) / (to - from) : 0.5;
  return fitted(around - share * wide, around - share * wide + wide, whole);
};

/** The marks of a window, in seconds. */
export const marks = ([from, to], most = 8) => {
  const step = tick(to - from, most);
  const found = [];
  for (let number = Math.ceil(from / step); number * step < to - step * 0.05; number += 1) {
    if (number > 0) found.push(number * step);
  }
  return { step, found };
};
