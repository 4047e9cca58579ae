"""Words and globs, as people write them: a `*` stands for any characters. Never regular expressions. Light."""

from app import bounds


def matches(pattern: str, text: str, *, within: bool = False) -> bool:
    """Whether a word or a glob fits a text, whatever the case. A word is the whole text, or stands `within` it; a `*`
    stands for any characters, also none."""
    pattern, text = pattern.casefold(), text[: bounds.RULE_MATCHED].casefold()
    if "*" not in pattern:
        return pattern in text if within else pattern == text
    first, *middle, last = pattern.split("*")
    if len(first) + len(last) > len(text) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
