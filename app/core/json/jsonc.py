"""JSON as editors write it, with comments and a comma after the last member, turned into JSON.

Every character keeps its place: what JSON does not know becomes spaces, so a place in the one text is the same place in
the other. One walk over the text, however it is nested.
"""

from __future__ import annotations


def plain(text: str) -> str:
    """The same text without comments and without the comma before a closing bracket."""
    found: list[str] = []
    at, comma, before = 0, -1, ""
    last = text.rfind("*/")
    while at < len(text):
        char = text[at]
        if char == '"':
            end = _after_text(text, at)
            found.append(text[at:end])
            comma, before = -1, char
        elif (end := _after_comment(text, at, last)) > at:
            found.append("".join("\n" if one == "\n" else " " for one in text[at:end]))
        else:
            end = at + 1
            if char in "]}" and comma >= 0:
                found[comma] = " "
            if char not in " \t\r\n":
                # A comma that follows nothing is a mistake, which stays for the reader to name.
                comma = len(found) if char == "," and before not in ("", "[", "{", ",", ":") else -1
                before = char
            found.append(char)
        at = end
    return "".join(found)


def _after_text(text: str, at: int) -> int:
    """Where the text in quotes ends that begins here; the end of all when it has no closing quote."""
    at += 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at + 1
        else:
            at += 1
    return len(text)


def _after_comment(text: str, at: int, last: int) -> int:
    """Where the comment ends that begins here; here, when none does or it has no end: `last` is where the last one
    ends, so that nobody searches for another again and again."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith("/*", at) and last >= at + 2:
        return text.find("*/", at + 2) + 2
    return at
