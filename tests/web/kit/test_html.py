"""Values to markup: nothing a server says becomes markup, and nothing it says is without a limit."""

import base64
import re
import time
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.wire import Finding, Message
from app.web.kit import format, html, json_tree
from app.web.kit.markdown import MARKDOWN_CHARACTERS, MARKED, TooMuch, markdown
from app.web.log.row import log_row

TAGS = {"div", "span", "details", "summary", "p"}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=20,
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    reader = Tags()
    reader.feed(str(html))
    return reader


def message(**changes: Any) -> Message:
    values: dict[str, Any] = {
        "seq": 7,
        "direction": "in",
        "at": 1_700_000_000.1185,
        "size": 1127,
        "kind": "request",
        "method": "tools/call",
        "rpc_id": 1,
        "gist": "hold_seat",
    }
    return Message(**(values | changes))


@given(ANYTHING)
def test_a_tree_of_anything_holds_only_our_own_tags(value: Any):
    found = parsed(str(json_tree.tree(value)))
    assert {tag for tag, _ in found.found} <= TAGS
    allowed = {"class", "role", "aria-label", "tabindex", "hx-ignore", "open"}
    assert all(set(attributes) <= allowed for _, attributes in found.found)


@given(st.text())
def test_escaped_text_is_text(text: str):
    escaped = html.esc(text)
    assert not set(escaped) & set("<>\"'\r")
    assert parsed(escaped).found == []


@given(st.text("`ab \u202e\U000e0060\U000e0061\U000e003c"))
def test_names_in_backticks_are_elements_of_their_own_whatever_is_hidden_between_them(text: str):
    """A hidden character may write out as a backtick too."""
    opened: list[str] = []
    for end, tag in re.findall(r"<(/?)(\w+)", html.drawn(html.told(text))):
        if not end:
            opened.append(tag)
        else:
            assert opened.pop() == tag
    assert opened == []
    assert str(html.told("`a\u202eb`")).startswith("<code>")


@given(st.text())
def test_what_hides_or_reorders_text_is_written_out(text: str):
    assert not set(html.visible(text)) & set("\u202e\u2066\u2028\ufeff\x1b\x07\x00")


def test_a_deep_value_is_cut_and_said_so():
    value: Any = "bottom"
    for _ in range(10_000):
        value = [value, {}]
    html = str(json_tree.tree(value))
    assert "not shown" in html
    assert "Too large to show whole" in html


def test_a_wide_value_is_cut_quickly():
    value = [{"number": index, "name": f"item {index}"} for index in range(50_000)]
    begun = time.perf_counter()
    html = str(json_tree.tree(value))
    assert time.perf_counter() - begun < 1
    assert len(html) < 500_000
    assert "more items" in html


def test_a_long_string_is_cut_with_its_rest_counted():
    html = str(json_tree.tree({"text": "x" * 10_000}))
    assert "6\u202f000 more characters" in html


def test_short_arrays_stand_on_one_line():
    assert str(json_tree.tree({"seats": ["14C", "2A"]})).count("<details") == 1


def test_marks_name_the_spot_by_its_pointer():
    html = str(json_tree.tree({"hold": {"a/b": 1}}, marks=["/hold/a~1b"]))
    assert html.count(" jh") == 1


def test_big_integers_and_exact_numbers_stay_exact():
    assert "12345678901234567890" in str(json_tree.tree({"n": 12345678901234567890}))


def test_a_row_escapes_every_text_of_the_server():
    attack = '"><script>alert(1)</script>'
    row = log_row(message(method=attack, gist=attack), (Finding(attack, "must", attack),), "/s/a")
    assert "script" not in {tag for tag, _ in parsed(row).found}
    assert attack in parsed(row).text


def test_a_row_says_its_side_its_kind_and_its_findings():
    row = log_row(message(kind="error", latency_ms=14400.0), (Finding("R5-29", "must", "x"),) * 2, "/s/a")
    assert "received" in row
    assert "i-res" in row
    assert "14.4 s" in row
    assert '</svg>2<span class="sr"> findings</span>' in row
    assert "22:13:20.118" in row


def test_ten_thousand_rows_render_in_well_under_a_second():
    row = message()
    begun = time.thread_time()
    for _ in range(10_000):
        log_row(row, (), "/s/a")
    assert time.thread_time() - begun < 1


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, ""), (0.4, "<1 ms"), (22.4, "22 ms"), (14_400, "14.4 s"), (60_000, "60 s"), (185_000, "3 min 5 s")],
)
def test_durations(ms: float | None, words: str):
    assert format.duration(ms) == words


@pytest.mark.parametrize(
    ("n", "words"), [(0, "0 B"), (999, "999 B"), (1127, "1.1 kB"), (3_200_000, "3.2 MB"), (2**32, "4.3 GB")]
)
def test_sizes(n: int, words: str):
    assert format.size(n) == words


@given(ANYTHING)
def test_the_type_of_any_schema_has_words(schema: Any):
    assert format.type_words(schema)


def test_prose_sets_wire_names_in_mono_and_nothing_else():
    assert str(html.prose("`jsonrpc` is <b>")) == "<code>jsonrpc</code> is &lt;b&gt;"


def test_bytes_that_are_no_text_are_still_shown():
    assert format.raw_text(b"ok \xff\x00", 100) == ("ok \\xff\x00", 0)
    assert format.raw_text(b"12345", 3) == ("123", 2)


def test_base64_is_measured_or_refused():
    assert format.base64_bytes("aGVsbG8=") == 5
    assert format.base64_bytes("<svg>") is None
    for size in (0, 1, 2, 3, 1535, 1536, 3071, 3072, 3073, 3074, 100_000, 100_001):
        assert format.base64_bytes(base64.b64encode(bytes(size)).decode()) == size
    for wrong in ("a", "ab=c" * 2000, "=" * 8000, "a" * 8000 + "<svg>   ", "é" * 8000):
        assert format.base64_bytes(wrong) is None
    assert format.base64_bytes(None) is None


@given(ANYTHING)
def test_a_lazy_tree_of_anything_holds_only_our_own_tags(value: Any):
    found = parsed(str(json_tree.tree(value, source="/s/x/calls/c1/branch?root=", max_nodes=5)))
    assert {tag for tag, _ in found.found} <= TAGS | {"button"}
    allowed = {"class", "role", "aria-label", "tabindex", "hx-ignore", "open", "type"}
    allowed |= {"data-k", "data-lazy", "data-more", "data-tree"}
    assert all(set(attributes) <= allowed for _, attributes in found.found)


@given(ANYTHING)
def test_every_part_that_a_lazy_tree_names_is_a_step_of_a_pointer(value: Any):
    html = str(json_tree.branch(value, 0))
    for _, attributes in parsed(html).found:
        assert "/" not in (attributes.get("data-k") or "")
    if isinstance(value, dict):
        for name in value:
            assert json_tree.at_pointer(value, f"/{json_tree.step(name)}") is value[name]


def test_the_rest_of_a_branch_begins_where_the_last_one_ended():
    value = [{"n": n} for n in range(5_000)]
    offset, seen = 0, 0
    for _ in range(50):
        html = str(json_tree.branch(value, offset, max_nodes=400))
        seen += html.count("<details")
        more = [attributes["data-more"] for _, attributes in parsed(html).found if "data-more" in attributes]
        if not more:
            break
        assert seen == int(more[0] or 0)
        offset = seen
    assert seen == 5_000


@pytest.mark.parametrize("pointer", ["/9", "/-1", "/x", "/00000000000", "/0/x", "/1/y", "x"])
def test_a_pointer_that_leads_nowhere_is_a_key_error(pointer: str):
    with pytest.raises(KeyError):
        json_tree.at_pointer([1, {"x": 2}], pointer if pointer.startswith("/") else "/" + pointer)


def test_a_search_finds_keys_and_values_in_their_order():
    value = {"Name": 1, "list": [{"x": "my NAME"}, 12, None], "deep": {"a/b~": {"name": []}}}
    assert [pointer for pointer, _ in json_tree.find(value, "name")] == ["/Name", "/list/0/x", "/deep/a~1b~0/name"]
    assert json_tree.find(value, "12") == [("/list/1", 12)]
    assert json_tree.find(value, "null") == [("/list/2", None)]
    assert len(json_tree.find(["x"] * 1_000, "x")) == 50
    html = str(json_tree.hits(json_tree.find({"<script>": "<script>"}, "script")))
    assert "<script>" not in html


def test_rows_that_repeat_may_be_folded_and_what_is_remarkable_never():
    finding = Finding("R5-29", "must", "x")
    polled = message(method="tasks/get", fold="tasks/get t7")
    assert 'data-fold="tasks/get t7"' in log_row(polled, (), "/s/a")
    assert "data-fold" not in log_row(polled, (), "/s/a", folds=False)
    assert "data-fold" not in log_row(polled, (finding,), "/s/a")
    assert "data-fold" not in log_row(message(method="ping", kind="error", fold="ping"), (), "/s/a")
    assert "data-fold" not in log_row(message(), (), "/s/a")


@pytest.mark.requirement("U-S6")
def test_what_matters_less_is_grey_and_only_requests_are_bold():
    refused = message(method="server/discover", kind="error", gist="-32601 Method not found")
    assert 'class="m grey"' in log_row(refused, (), "/s/a")
    assert "-32601, older server, as expected" in log_row(refused, (), "/s/a")
    newer = message(method="server/discover", kind="error", gist="-32022 Unsupported protocol version")
    assert 'class="m bad2"' in log_row(newer, (), "/s/a")
    asked = message(method="server/discover", direction="out", gist="")
    assert 'class="m grey"' in log_row(asked, (), "/s/a") and "version check" in log_row(asked, (), "/s/a")
    assert 'class="m grey"' in log_row(message(method="ping"), (), "/s/a")
    assert 'class="meth"' in log_row(message(), (), "/s/a")
    assert 'class="meth no"' in log_row(message(kind="notification"), (), "/s/a")
    junk = message(method=None, kind="invalid", problem="Not JSON", gist="Starting …")
    assert ">Invalid line<" in log_row(junk, (), "/s/a") and "Starting …" in log_row(junk, (), "/s/a")


# ---- Markdown

MARKDOWN_TAGS = {"p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a", "div"} | {
    *("table", "thead", "tbody", "tr", "th", "td"),
}
EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{7*7}}",
    "</textarea></pre></div><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/)",
    "[x](/s/abc/close)",
    "[x](?close)",
    "[x](#main)",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://tracker.example/p.png)",
    "[![x](https://tracker.example/p.png)](javascript:alert(1))",
    '[x](https://a.example ""onmouseover=alert(1)")',
    "[x]: javascript:alert(1)\n\n[x]",
    "<div hx-get=/s/abc hx-trigger=load>x</div>",
    "<hx-partial hx-target=body>x</hx-partial>",
    '<a href="https://a.example" data-hx-get="/x">x</a>',
    "```<script>\nalert(1)</script>\n```",
    '```x" onclick="alert(1)\ny\n```',
    "|a|\n|-|\n|<img src=x onerror=alert(1)>|",
    "<!--><script>alert(1)</script-->",
    "<math><mtext></mtext><style><img src=x onerror=alert(1)></style></math>",
    "\x00<script>\x00",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
]


def harmless(text: str) -> Tags:
    """What Markdown made of it, checked: our tags, our attributes, and links that leave the page safely."""
    found = parsed(str(markdown(text)))
    for tag, attributes in found.found:
        assert tag in MARKDOWN_TAGS, (tag, text)
        given_ones = set(attributes)
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer nofollow"
            assert attributes["target"] == "_blank"
            assert given_ones <= {"href", "title", "rel", "target"}
            assert (attributes.get("href") or "https://").lower().startswith(("https://", "http://", "mailto:")), text
        elif tag == "p":
            assert attributes.get("class", "mh1") in {"mh1", "mh2", "mh3"}
            assert given_ones <= {"class"}
        elif tag == "div":
            assert attributes == {"class": "wide", "role": "group", "aria-label": "Table", "tabindex": "0"}
        else:
            assert not given_ones or (tag == "ol" and given_ones == {"start"}), (tag, attributes)
    return found


@pytest.mark.requirement("S29", "S30", "S32")
@pytest.mark.parametrize("text", EVIL)
def test_markdown_of_an_attack_is_harmless(text: str):
    harmless(text)
    harmless(f"# {text}\n\n> - {text}\n\n|{text}|\n|-|\n|{text}|")


@pytest.mark.requirement("S29", "S30", "S32")
@given(
    st.lists(
        st.sampled_from([*EVIL, "\n", "\n\n", "> ", "- ", "**", "`", "[", "](", ")", "|", "#"]) | st.text(max_size=9)
    )
)
def test_markdown_of_anything_is_harmless(parts: list[str]):
    with suppress(TooMuch):  # it has so much time, and a machine may be busy: then it is shown as text
        harmless("".join(parts))


def test_markdown_is_laid_out():
    text = "# One\n\nA **bold** [word](https://a.example/), ~~no~~ `code`.\n\n- a\n\n|h|\n|-|\n|c|\n\n```py\nx < 1\n```"
    found = harmless(text)
    tags = [tag for tag, _ in found.found]
    assert {"strong", "a", "s", "code", "ul", "li", "table", "pre"} <= set(tags)
    assert ("p", {"class": "mh1"}) in found.found
    assert "word (a.example)" in found.text
    assert "x < 1" in found.text


@pytest.mark.requirement("S32")
def test_a_link_says_where_it_really_leads_and_an_image_is_only_a_link():
    assert "https://good.example (evil.example)" in harmless("[https://good.example](https://evil.example/a)").text
    assert "(xn--bcher-kva.example)" in harmless("[books](https://bücher.example/)").text
    assert harmless("<https://a.example/>").text.strip() == "https://a.example/"
    image = harmless("![a dog](https://a.example/dog.png)")
    assert "image: a dog (a.example)" in image.text
    assert [tag for tag, _ in image.found] == ["p", "a"]


def test_markdown_has_a_limit_of_length_and_of_time():
    with pytest.raises(TooMuch, match="Longer than"):
        markdown("a" * (MARKDOWN_CHARACTERS + 1))
    for slow in ("![a", "[", "- a\n", "a*b_"):
        with pytest.raises(TooMuch, match="too long"):
            markdown(slow * (MARKDOWN_CHARACTERS // len(slow)), seconds=0.001)


@pytest.mark.parametrize("text", ["5", "hello world", "It costs 3 euros, says O'Neil.", "two\nlines", "a - b"])
def test_plain_words_are_not_offered_as_markdown(text: str):
    assert MARKED.search(text) is None


@pytest.mark.parametrize("text", ["# a", "*a*", "a `b`", "- a", "x\n1. a", "a\n\nb", "[a](b)", "a|b"])
def test_what_may_be_markdown_is(text: str):
    assert MARKED.search(text)


HIDDEN = "a\u200bb"


@pytest.mark.requirement("H08")
def test_h08_a_mark_is_an_element_in_text_and_plain_text_where_no_element_can_be():
    said = html.esc(HIDDEN)
    drawn = html.drawn(f'<p title="{said}">{said}</p><textarea>{said}</textarea><option value="{said}">{said}</option>')
    mark = 'a<span class="mark" title="U+200B ZERO WIDTH SPACE">\\u200b</span>b'
    plain = "a\\u200bb"
    assert drawn == (
        f'<p title="{plain}">{mark}</p><textarea>{plain}</textarea><option value="{plain}">{plain}</option>'
    )
    svg = html.drawn(f"<svg><text>{said}</text></svg>{said}<p title='>' id=\"{said}\">")
    assert svg == f"<svg><text>{plain}</text></svg>{mark}<p title='>' id=\"{plain}\">"


@pytest.mark.requirement("H08")
@given(st.text(st.sampled_from("\ufdd0\ufdd1\ufdd2<>\"'a =\u200b\U000e0061\U000e003c\U000e0022\u0301"), max_size=40))
def test_h08_no_text_can_forge_a_mark_or_break_out_of_one(text: str):
    page = html.drawn(f'<p title="{html.esc(text)}">{html.esc(text)}</p><i data-k="{html.esc_exact(text)}"></i>')
    found = parsed(page)
    assert {tag for tag, _ in found.found} <= {"p", "span", "i"}
    assert all(set(attributes) <= {"title", "class", "data-k"} for _, attributes in found.found)
    assert page.endswith(f'<i data-k="{html.esc_exact(text)}"></i>'), "what is exact stays so"
    assert found.text == html.visible(text)
