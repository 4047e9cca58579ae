// The contrast of every visible text with what is behind it, as WCAG computes it. Called with the least that is enough.
(least) => {
  // Colours come as rgb, oklab or color(): a canvas makes them all the same.
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const ink = canvas.getContext('2d', { willReadFrequently: true }),
    known = new Map(),
    grounds = new Map();
  const rgba = (text) => {
    if (!known.has(text)) {
      ink.clearRect(0, 0, 1, 1);
      ink.fillStyle = text;
      ink.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = ink.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (el) => {
    if (!el) return rgba('canvas');
    if (!grounds.has(el)) {
      const own = rgba(getComputedStyle(el).backgroundColor);
      grounds.set(el, own[3] === 1 ? own : over(own, ground(el.parentElement)));
    }
    return grounds.get(el);
  };
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT),
    seen = new Set(),
    found = [];
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || seen.has(el)) continue;
    seen.add(el);
    if (el.closest(':disabled, [aria-disabled=true], .sr, script, noscript, option, datalist')) continue;
    if (!el.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })) continue;
    const style = getComputedStyle(el),
      under = ground(el);
    found.push([ratio(over(rgba(style.color), under), under), el.outerHTML.slice(0, 160)]);
  }
  for (const el of document.querySelectorAll('input, textarea')) {
    if (el.disabled || !el.placeholder || el.value || !el.checkVisibility()) continue;
    const under = ground(el);
    found.push([
      ratio(over(rgba(getComputedStyle(el, '::placeholder').color), under), under),
      el.outerHTML.slice(0, 160),
    ]);
  }
  return {
    texts: found.length,
    least: Math.min(...found.map(([value]) => value)),
    weak: found.filter(([value]) => value < least),
  };
};
