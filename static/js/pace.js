// When a message of the stream goes into the page.
//
// A message that comes alone goes in at once. In a burst there is one to a frame: the tab stays responsive, and what is
// unread pushes back over TCP. Two in a row are no burst when the second is small: a call and its result.

const QUIET = 40;
const SMALL = 16384;

export class Pace {
  #last = Number.NEGATIVE_INFINITY;
  #before = Number.NEGATIVE_INFINITY;

  /** A message went into the page. */
  swapped(now) {
    this.#before = this.#last;
    this.#last = now;
  }

  /** Whether a message of that many characters has to wait for the next frame. */
  waits(now, size) {
    return now - (size < SMALL ? this.#before : this.#last) <= QUIET;
  }
}

/** How long the first connect waits before it is tried again. */
export const backOff = (tries) => Math.min(15000, 500 * 2 ** tries);
