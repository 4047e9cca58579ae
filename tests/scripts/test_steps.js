// The way from one difference to the next.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepped } from '../../static/js/decide.js';

test('the first step begins at an end, and the last one goes round', () => {
  assert.equal(stepped(-1, 1, 5), 0);
  assert.equal(stepped(-1, -1, 5), 4);
  assert.equal(stepped(0, 1, 5), 1);
  assert.equal(stepped(4, 1, 5), 0);
  assert.equal(stepped(0, -1, 5), 4);
  assert.equal(stepped(0, 1, 1), 0);
});
