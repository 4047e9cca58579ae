"""What is masked in a recording: by name, by its looks, because it was typed before; and what is left alone."""

import base64
import json
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import mcp_types
import mcp_types.jsonrpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from app import bounds, secrecy
from app.recordings import masks as module
from app.recordings import quick
from app.recordings.lines import RootsState, State, noun_shapes, read_line
from app.recordings.masks import MASK, Masks, line_of
from app.recordings.protocol_names import PROTOCOL_NAMES
from app.recordings.scribe import Book, plain, served
from app.recordings.suspects import is_suspect
from tests.secret_cases import CASES


def frame(masks: Masks, value: Any, *, typed: bool = False) -> Any:
    raw = json.dumps(value).encode()
    masked = masks.frame(raw, typed=typed)
    return json.loads(masked)


def test_what_has_no_secret_stays_byte_for_byte():
    raw = b'{ "id" : 1.50,"result":{"content":[{"type":"text","text":"h\\u00e9llo"}], "password": ""}}'
    assert Masks().frame(raw, typed=False) is raw
    assert Masks().frame(b"no json at all", typed=True) == b"no json at all"
    assert Masks(values=["hidden1"]).frame(b"\xff hidden1", typed=False) == b"\xff " + MASK.encode()


def test_a_member_is_masked_by_its_name_and_its_text_wherever_it_comes_again():
    masks = Masks()
    sent = frame(
        masks, {"params": {"arguments": {"password": "hunter2", "deep": {"secret": {"a": "s3same"}}}}}, typed=True
    )
    assert sent == {"params": {"arguments": {"password": MASK, "deep": {"secret": MASK}}}}
    came = frame(masks, {"result": {"content": [{"text": "you said hunter2, s3same"}], "hunter2": 1}})
    assert came == {"result": {"content": [{"text": f"you said {MASK}, {MASK}"}], MASK: 1}}
    assert masks.counts[("/params/arguments/password", "password")] == 1
    assert masks.counts[("/result/content/*/text", "a secret that was typed")] == 2


def test_a_schema_speaks_of_secrets_and_has_none():
    schema = {"type": "object", "properties": {"password": {"type": "string", "description": "password: any word"}}}
    tools = {"result": {"tools": [{"name": "login", "inputSchema": schema, "description": "token: yours"}]}}
    assert frame(Masks(), tools) == tools
    ask = {"method": "elicitation/create", "params": {"requestedSchema": schema, "message": "Sign in"}}
    assert frame(Masks(), ask) == ask
    assert frame(Masks(), {"params": {"_meta": {"progressToken": 7}, "cursor": "abc"}}, typed=True)["params"] == {
        "_meta": {"progressToken": 7},
        "cursor": "abc",
    }


def test_names_and_pointers_of_a_person():
    masks = Masks(names=["Passport "], pointers=["/result/content/*/text", "/params/list/0"])
    found = frame(masks, {"result": {"content": [{"text": "PT-4711-X"}], "passport": {"number": "N-99 88"}}})
    assert found == {"result": {"content": [{"text": MASK}], "passport": MASK}}
    assert frame(masks, {"params": {"list": ["first one", "b"], "n": "N-99 88"}}) == {
        "params": {"list": [MASK, MASK], "n": MASK}
    }, "any place of a list is one place; and what was masked is masked where it comes again"


def test_a_glob_of_a_person_masks_every_kind_of_value_and_what_nothing_has_is_said():
    masks = Masks(names=["*Seat*", "agreed", "nosuch"], pointers=["/params/city", "/params/country"])
    sent = {"params": {"seat_no": 14, "window_seat": True, "agreed": False, "city": "Bergen", "note": "a window"}}
    assert frame(masks, sent) == {
        "params": {"seat_no": MASK, "window_seat": MASK, "agreed": MASK, "city": MASK, "note": "a window"}
    }
    assert masks.unmet(["*Seat*", "agreed", "nosuch", "/params/city", "/params/country"]) == [
        "nosuch",
        "/params/country",
    ]


@pytest.mark.parametrize("key", ["sk-abcdefghijklmnop1234", "ghp_abcdefghijklmnop1234", "AKIAABCDEFGHIJKLMNOP"])
def test_keys_of_well_known_services_are_masked_by_their_looks(key: str):
    assert frame(Masks(), {"result": {"text": f"use {key} now"}}) == {"result": {"text": f"use {MASK} now"}}


@given(st.text(alphabet=st.characters(exclude_characters="=:@-"), max_size=60))
def test_a_text_that_is_not_looked_at_has_no_secret(text: str):
    if not is_suspect(text):
        assert secrecy.in_text(text) == []


def test_what_is_a_secret_anywhere_is_one_here():
    for case in CASES:
        for text in (" ".join(case.filled("c4n4ryvalue")), *case.filled("c4n4ryvalue")):
            assert Masks().text(text) == secrecy.masked(text), text


def test_a_word_that_stands_in_every_sentence_is_not_masked_everywhere():
    masks = Masks()
    frame(masks, {"params": {"arguments": {"key": "city", "session": "morning"}}}, typed=True)
    assert frame(masks, {"result": {"text": "the morning of the city"}})["result"]["text"] == "the morning of the city"


def test_as_many_texts_are_remembered_as_are_bounded():
    masks = Masks()
    many = {f"password{n}": f"secret-number-{n}" for n in range(bounds.MASKS + 50)}
    assert set(frame(masks, {"params": {"arguments": many}}, typed=True)["params"]["arguments"].values()) == {MASK}
    assert len(masks._values) == bounds.MASKS


def test_a_recording_is_masked_once_more_line_by_line():
    lines = b"\n".join(
        json.dumps(one).encode()
        for one in [
            {"parley": "recording", "version": 1, "title": "about Lisbon9"},
            {"kind": "frame", "seq": 1, "direction": "in", "raw": '{"result": {"city": "Lisbon9"}}'},
            {"kind": "frame", "seq": 2, "direction": "in", "raw_base64": "/w=="},
            {"kind": "call", "seq": 2, "value": {"params": {"city": "Lisbon9"}}, "reply_raw": '{"city":"Lisbon9"}'},
            {"kind": "end", "value": {"why": "stopped", "masked": [{"pointer": "/a", "name": "b", "count": 1}]}},
            {"kind": "strange", "value": "Lisbon9"},
        ]
    )
    book = Book([], ["city"], [])
    once, counts = book.again(lines + b"\nno json Lisbon9\n")
    assert {pointer: count for pointer, _, count in counts or []}["/result/city"] == 1
    book.masks.counts.clear()
    book.before = [{"pointer": "/a", "name": "b", "count": 1}]
    twice, _ = book.again(lines + b"\nno json Lisbon9\n")
    assert b"Lisbon9" in once
    assert b"Lisbon9" not in twice, "what came before it was known is masked too"
    end = json.loads(twice.splitlines()[4])["value"]["masked"]
    assert {"pointer": "/a", "name": "b", "count": 1} in end
    assert {"pointer": "/result/city", "name": "city", "count": 1} in end


FRAME = {"kind": "frame", "direction": "in", "seq": 1, "at": 1.0, "size": 3, "number": 1}


@pytest.mark.parametrize("depth", [399, 500, 980, 100_000])
def test_what_is_nested_very_deep_ends_nothing_and_keeps_no_secret(depth: int):
    # 495 levels were enough to end the process, and with it every recording of everybody.
    frame = b'{"a":' * depth + b'{"password":"hunter2-hunter2","note":"canary-of-the-target"}' + b"}" * depth
    line = Book(["canary-of-the-target"], [], []).write([("frame", dict(FRAME), frame)])[0]
    assert b"canary" not in line and b"hunter2" not in line
    again, _ = Book(["canary-of-the-target"], [], []).again(frame + b"\n")
    assert b"canary" not in again and b"hunter2" not in again


def test_a_portion_that_fails_costs_its_own_recording_alone():
    books: dict[str, Book] = {}
    for rid in ("mine", "theirs"):
        assert served(books, ("open", rid, ([], [], [], {}))) == (b"", None)
    lines, why = served(books, ("write", "mine", [plain([("noun", "unheard of", "", 1, 1.0, {}, {}, None)])]))
    assert lines is None and "KeyError" in why
    assert served(books, ("write", "theirs", [plain([("frame", dict(FRAME), b"{}")])]))[0].endswith(b"\n")


def test_a_secret_of_the_target_that_looks_like_json_breaks_no_header():
    header = {"parley": "recording", "title": "", "target": {"transport": "http", "url": "http://a/x-canary-x"}}
    line = Book(['"transport"', "x-canary-x"], [], []).write([("header", header, None)])[0]
    assert json.loads(line)["target"] == {"transport": "http", "url": f"http://a/{MASK}"}


def test_a_secret_is_found_in_an_address_in_base64_and_in_a_text_within_a_text():
    secret = 's3cr3t/va+lue=canary&"quo\\te"'
    masks = Masks([secret])
    said = [quote(secret), quote(secret, safe=""), quote_plus(secret), escape(secret), json.dumps({"x": secret})]
    said += [base64.b64encode(before + secret.encode() + b"!!").decode() for before in (b"", b"u:", b"user", b"a-user")]
    said += [base64.urlsafe_b64encode(secret.encode()).decode()]
    whole = {base64.b64encode(bytes(n) + secret.encode()).decode()[4:-6] for n in range(3)}
    for text in said:
        for raw in (json.dumps({"text": f"see http://h/?q={text} there"}).encode(), f"no json {text}".encode()):
            masked = masks.frame(raw, typed=False).decode()
            assert "canary" not in masked and not any(one in masked for one in whole), text
    innocent = b'{"text":"czNjcjN0 and other words"}'
    assert masks.frame(innocent, typed=False) is innocent


def test_half_a_character_keeps_no_noun_out_of_a_recording():
    roots = {"roots": [{"uri": "file:///x\ud800y", "name": "\ud83d\ude00"}]}
    line = Book([], [], []).write([("state", {"kind": "roots", "seq": 8, "at": 1.0, "value": roots}, None)])[0]
    found = read_line(line)
    assert isinstance(found, State) and isinstance(found.noun, RootsState)
    assert found.noun.roots[0]["uri"] == "file:///x\ufffdy" and found.noun.roots[0]["name"] == "\U0001f600"


_WORDS = st.sampled_from(
    [
        "password", "apiKey", "token", "name", "text", "progressToken", "id", "arguments", "Authorization", "x" * 300,
        "2.0", "echo", "", "password: hunter22", "Bearer abcdefgh12345678", "https://u:pw@example.org/", MASK,
        "the quick brown fox", "typed-canary", "said typed-canary again", "sk-" + "a" * 20, "y" * 500,
    ]
)  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORDS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_WORDS, below, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.tuples(_VALUES, st.booleans()), max_size=5), st.booleans())
def test_what_is_passed_at_a_glance_is_what_a_close_look_leaves_as_it_is(said: list[tuple[Any, bool]], known: bool):
    glance, close = (Masks(values=["typed-canary"] if known else []) for _ in range(2))
    for value, typed in said:
        masked = glance.value(value, typed=typed)
        assert masked == close._walk(value, (), typed, module._DEEPEST)
        assert (glance.counts, glance._sought) == (close.counts, close._sought)


def test_a_secret_that_is_nested_too_deep_to_be_masked_is_not_passed_at_a_glance():
    for innermost in ({"password": "canary"}, "plain"):
        deep: Any = innermost
        for _ in range(module._DEEPEST + 1):
            deep = [deep]
        with pytest.raises(RecursionError):
            Masks().value(deep)


@pytest.mark.parametrize("deep", [module._DEEPEST - 20, module._DEEPEST + 10, 900, 1_100])
def test_what_a_member_that_comes_twice_hides_is_found_in_the_text_of_what_is_nested_deep(deep: int):
    key = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2"
    raw = b"[" * deep + b'{"a":"%s"}' % key.encode() + b"]" * deep
    assert key.encode() not in Masks().frame(raw, typed=False)
    twice = b"[" * deep + b'{"a":"%s","a":1}' % key.encode() + b"]" * deep
    assert deep < module._DEEPEST or key.encode() not in Masks().frame(twice, typed=False)


def test_half_a_character_in_a_secret_ends_nothing():
    masks = Masks()
    masks.frame(b'{"password":"\\ud800abcdefgh"}', typed=True)
    assert masks.frame(b"\xff", typed=False) == b"\xff"


def test_a_long_text_is_looked_through_once(monkeypatch: pytest.MonkeyPatch):
    asked, looks = list[int](), secrecy.in_text

    def counted(text: str) -> list[secrecy.Hidden]:
        asked.append(len(text))
        return looks(text)

    monkeypatch.setattr(secrecy, "in_text", counted)
    long = "'a " * 5_000 + "ghp_a1B2a1B2a1B2a1B2a1B2a1B2"
    assert b"ghp_" not in Masks().frame(json.dumps({"data": long}).encode(), typed=False)
    assert asked == [len(long)], "a server that sends millions of words would hold up every recording"


@pytest.mark.parametrize("names", [["state"], ["name"], ["legs"], ["started_at"], ["progress"], ["head"], ["*"], []])
@pytest.mark.parametrize("pointers", [[], ["/params", "/result", "/params/arguments", "/state", "/legs"]])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_whatever_is_masked_a_recording_can_be_read(era: str, names: list[str], pointers: list[str]):
    words = (
        [] if names else ["number", "params", "tool_error", "call.", "done", "tools", "content", "value", "reply_seq"]
    )
    book = Book(words, names, pointers, noun_shapes())
    lines = (Path(__file__).parent / f"v1-{era}.jsonl").read_bytes().splitlines(keepends=True)
    told = [book.again(line)[0] for line in lines]
    for line, masked in zip(lines, told, strict=True):
        before, after = read_line(line), read_line(masked)
        assert type(after) is type(before)
        if isinstance(before, State) and isinstance(after, State):
            assert type(after.noun) is type(before.noun)
    assert told != lines or not (names or pointers)
    if names == ["name"]:
        assert b'"name":"echo"' not in b"".join(told)


def test_what_a_call_was_given_is_masked_with_its_message():
    call = {"id": "c1", "method": "tools/call", "params": {"name": "canary-1"}, "started_at": 1.0, "state": "done"}
    for names, pointers in ((["params"], []), ([], ["/params"]), (["name"], [])):
        masked = Masks(names=names, pointers=pointers).noun("call", dict(call), noun_shapes()["call"])
        assert "canary" not in json.dumps(masked) and isinstance(masked["params"], dict)
        assert {key: masked[key] for key in ("id", "method", "state", "started_at")} == {
            key: call[key] for key in ("id", "method", "state", "started_at")
        }


def test_every_member_of_the_protocol_is_known_by_its_name():
    found = {
        field.alias or name
        for module in (mcp_types._types, mcp_types.jsonrpc)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name, field in kind.model_fields.items()
    }
    assert {name for name in found if "/" not in name} <= PROTOCOL_NAMES


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**70, 10**400, 1.5e300, -0.0, 5e-324])
def test_numbers_are_written_as_they_came(number: float):
    value = {"logs": [{"data": number}]}
    line = {"kind": "call", "seq": 7, "at": 1.0, "id": "c1", "value": value}
    book = Book([], [], [], {"call": None})
    (raw, _) = book.write([("noun", "call", "c1", 7, 1.0, value, {}, None)])
    assert raw.endswith(b"\n")
    assert repr(json.loads(raw)) == repr(line)
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"n": number, "password": "canary"}}).encode()
    assert repr(json.loads(Masks().frame(frame, typed=False))["result"]["n"]) == repr(number)


@given(_VALUES, st.text() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_line_is_the_same_whichever_way_it_is_written(value: Any, other: Any):
    line = {"kind": "call", "value": [value, {"other": other}]}
    quickly = quick.line(line)
    assert quickly is None or (quickly.endswith(b"\n") and quickly.count(b"\n") == 1)
    assert json.loads(quickly or line_of(line)) == line


@pytest.mark.parametrize("hard", ["\ud800", 2**64, [[]] * 2])
def test_what_cannot_be_written_quickly_is_written_as_before(hard: Any):
    if isinstance(hard, list):
        for _ in range(300):
            hard = [hard]
    assert quick.line({"value": hard}) is None
    assert json.loads(line_of({"value": hard})) == {"value": "\ufffd" if hard == "\ud800" else hard}


@pytest.mark.parametrize("deep", [300, 340, 380, module._DEEPEST - 3])
@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_what_stands_beside_something_nested_deep_is_masked_all_the_same(deep: int, wrap: Any):
    nested: Any = "plain"
    for _ in range(deep):
        nested = wrap(nested)
    said = {"x": nested, "pin": 918273, "passwords": ["first-canary", "second-canary"]}
    told = json.dumps(Masks().value(said))
    assert "canary" not in told
    assert "918273" not in told
    assert Masks().value({"x": nested}) == {"x": nested}
