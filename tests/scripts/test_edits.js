// What was changed in an answer, as it is marked while somebody types.
import assert from 'node:assert/strict';
import test from 'node:test';
import { edits, words } from '../../static/js/edits.js';

test('both texts can be read off what is marked', () => {
  const cases = [
    ['', ''],
    ['same', 'same'],
    ['the early ferry hums its song.', 'the early ferry hums.'],
    ['one two three', '1 two 3'],
    ['a\n\nb', 'a\nb'],
    ['', 'new'],
  ];
  for (const [before, after] of cases) {
    const found = edits(before, after);
    const read = (left) =>
      found
        .filter(([tag]) => tag !== left)
        .map(([, text]) => text)
        .join('');
    assert.equal(read('ins'), before);
    assert.equal(read('del'), after);
  }
  assert.deepEqual(edits('a quiet harbour', 'a loud harbour'), [
    ['', 'a '],
    ['del', 'quiet'],
    ['ins', 'loud'],
    ['', ' harbour'],
  ]);
});

test('words are counted', () => {
  assert.equal(words('one'), '1 word');
  assert.equal(words(' two\nwords '), '2 words');
  assert.equal(words(''), '0 words');
});
