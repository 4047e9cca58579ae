"""Which pictures of two folders differ, and where.

The pixels are compared in a page, on a canvas: whoever has the browser that took the pictures needs nothing else.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.parley import launch

DIFFERENCES = "differences"
"""Where the drawings of what differs go, below the second folder."""
_DIFF = """async ([before, after]) => {
    const load = async (raw) => createImageBitmap(await (await fetch('data:image/png;base64,' + raw)).blob());
    const [a, b] = [await load(before), await load(after)];
    const width = Math.max(a.width, b.width), height = Math.max(a.height, b.height);
    const pixels = (image) => {
        const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, width, height);
    };
    const [left, right] = [pixels(a), pixels(b)], drawn = new ImageData(width, height);
    let count = 0, x0 = width, y0 = height, x1 = -1, y1 = -1;
    for (let at = 0; at < left.data.length; at += 4) {
        const same = [0, 1, 2, 3].every((k) => left.data[at + k] === right.data[at + k]);
        if (!same) {
            const x = (at / 4) % width, y = Math.floor(at / 4 / width);
            count += 1; x0 = Math.min(x0, x); y0 = Math.min(y0, y); x1 = Math.max(x1, x); y1 = Math.max(y1, y);
            drawn.data.set([220, 0, 60, 255], at);
        } else for (let k = 0; k < 3; k += 1) drawn.data[at + k] = 255 - (255 - right.data[at + k]) / 4;
        drawn.data[at + 3] = 255;
    }
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [width, height];
    canvas.getContext('2d').putImageData(drawn, 0, 0);
    return { count, box: [x0, y0, x1 + 1, y1 + 1], sizes: [a.width, a.height, b.width, b.height],
             png: count ? canvas.toDataURL('image/png').split(',')[1] : '' };
}"""


@dataclass(frozen=True)
class Difference:
    """One picture that is not what it was."""

    name: str
    words: str


def compare(before: Path, after: Path) -> list[Difference]:
    """What differs between the pictures of two folders. Draws each difference below the second folder."""
    old, new = ({path.name: path for path in folder.glob("*.png")} for folder in (before, after))
    drawings = after / DIFFERENCES
    if drawings.is_dir():
        for stale in drawings.glob("*.png"):
            stale.unlink()
    found = [Difference(name, "is missing") for name in old.keys() - new.keys()]
    found += [Difference(name, "is extra") for name in new.keys() - old.keys()]
    suspects = [name for name in old.keys() & new.keys() if old[name].read_bytes() != new[name].read_bytes()]
    if suspects:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            page = browser.new_page()
            for name in suspects:
                found += _looked_at(page, name, old[name], new[name], drawings)
            browser.close()
    return sorted(found, key=lambda each: each.name)


def _looked_at(page: Page, name: str, before: Path, after: Path, drawings: Path) -> list[Difference]:
    told = page.evaluate(_DIFF, [base64.b64encode(path.read_bytes()).decode() for path in (before, after)])
    width, height, new_width, new_height = told["sizes"]
    words = [] if (width, height) == (new_width, new_height) else [f"{width}×{height} became {new_width}×{new_height}"]
    if told["count"]:
        left, top, right, bottom = told["box"]
        words.append(f"{told['count']} pixels differ, within x {left}–{right}, y {top}–{bottom}")
        drawings.mkdir(exist_ok=True)
        (drawings / name).write_bytes(base64.b64decode(told["png"]))
    return [Difference(name, "; ".join(words))] if words else []
