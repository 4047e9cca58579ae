"""Arguments as headers (2026-07-28): our rules, held against the SDK's own, which a server on it applies."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    NAME_BEARING_METHODS,
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from app.core.revisions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS
from app.core.rules.param_headers import header_value, param_headers, sift_tools
from app.protocol import envelope

NAMES = st.sampled_from(["A", "a", "B", "x y", "", "Mcp", "ü", 1, None])
TYPES = st.sampled_from(["string", "integer", "boolean", "number", "object", None, ["string"]])
KEYWORDS = ["items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "contentSchema"]
KEYWORDS += ["unevaluatedItems", "unevaluatedProperties", "default", "const"]


def schema(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["p", "q", "r"]), below, max_size=2)
    some = st.lists(below, max_size=2)
    members: dict[str, st.SearchStrategy[Any]] = {"type": TYPES, "x-mcp-header": NAMES, "properties": named}
    members |= dict.fromkeys(KEYWORDS, below)
    members |= dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems", "enum"), some)
    members |= dict.fromkeys(("patternProperties", "dependentSchemas", "$defs", "definitions"), named)
    return st.fixed_dictionaries({}, optional=members)


SCHEMAS = st.recursive(st.sampled_from([{}, True, None, {"type": "string", "x-mcp-header": "A"}]), schema, max_leaves=5)


@pytest.mark.requirement("R6-23")
@given(SCHEMAS)
def test_a_tool_is_rejected_exactly_when_the_sdk_rejects_it(given_schema: Any):
    kept, rejected, headers = sift_tools([{"name": "t", "inputSchema": given_schema}])
    assert bool(rejected) == (find_invalid_x_mcp_header(given_schema) is not None)
    assert len(kept) + len(rejected) == 1
    if kept:
        assert headers.get("t", {}) == x_mcp_header_map(given_schema)


@pytest.mark.requirement("R6-22")
@given(st.text() | st.sampled_from(["=?base64??=", "=?base64?YQ==?=", " a", "a\t", "=?base64?="]))
def test_a_value_is_written_as_the_sdk_writes_it_and_reads_it(text: str):
    assert header_value(text) == encode_header_value(text)
    assert decode_header_value(header_value(text)) == text


@pytest.mark.requirement("R6-22")
@given(
    st.dictionaries(
        st.sampled_from(["p", "q"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda below: st.dictionaries(st.sampled_from(["p", "q"]), below) | st.lists(below, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_arguments_become_the_headers_that_the_sdk_expects(arguments: dict[str, Any]):
    wanted = {("p",): "P", ("q", "p"): "Q-P", ("q", "q"): "Q"}
    assert dict(param_headers(wanted, arguments)) == mcp_param_headers(wanted, arguments)


def test_a_number_too_long_to_write_and_half_a_character_harm_nobody():
    assert param_headers({("p",): "P"}, {"p": 10**5000}) == []
    assert base64.b64decode(header_value("\ud800")[9:-2]) == b"\xed\xa0\x80"


@pytest.mark.requirement("R6-21")
def test_the_member_that_is_repeated_is_the_one_that_the_sdk_reads():
    assert dict(NAME_BEARING_METHODS).items() <= envelope._NAMED_BY.items()


def test_the_revisions_are_those_of_the_sdk():
    assert tuple(reversed(HANDSHAKE_PROTOCOL_VERSIONS)) == HANDSHAKE_VERSIONS
    assert tuple(reversed(MODERN_PROTOCOL_VERSIONS)) == STATELESS_VERSIONS


def test_a_method_without_a_name_has_no_header_for_one():
    """Whatever its params are called: a member with the empty name is no name either."""
    sealed = envelope.Envelope("2026-07-28", {}, {})
    for method in ("x/other", "tools/list", ""):
        headers = dict(sealed.seal(method, {"": "x", "name": "y"}, None)[1])
        assert set(headers) == {"mcp-protocol-version", "mcp-method"}, method
    assert dict(sealed.seal("prompts/get", {"name": "y"}, None)[1])["mcp-name"] == "y"
