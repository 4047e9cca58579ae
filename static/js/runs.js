// Which rows of the log stand in a run that is worth folding.

const RUN = 6;

/** Where at least six equal names stand in a row, as pairs of begin and end. Rows without a name end a run. */
export const runs = (names) => {
  const found = [];
  for (let begin = 0, end = 0; begin < names.length; begin = end) {
    while (end < names.length && names[end] === names[begin]) end++;
    if (names[begin] && end - begin >= RUN) found.push([begin, end]);
  }
  return found;
};
