"""RFC 6570, by its own examples, and what happens to a template that is none."""

import time

import pytest

from app.core.uritemplate import BadTemplate, UriTemplate, Value

VALUES: dict[str, Value] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
}
EXAMPLES = """
{var} value
{hello} Hello%20World%21
{half} 50%25
O{empty}X OX
O{undef}X OX
{x,y} 1024,768
{x,hello,y} 1024,Hello%20World%21,768
?{x,empty} ?1024,
?{undef,y} ?768
{var:3} val
{var:30} value
{list} red,green,blue
{list*} red,green,blue
{keys} semi,%3B,dot,.,comma,%2C
{keys*} semi=%3B,dot=.,comma=%2C
{+var} value
{+hello} Hello%20World!
{+half} 50%25
{base}index http%3A%2F%2Fexample.com%2Fhome%2Findex
{+base}index http://example.com/home/index
O{+empty}X OX
{+path}/here /foo/bar/here
here?ref={+path} here?ref=/foo/bar
up{+path}{var}/here up/foo/barvalue/here
{+x,hello,y} 1024,Hello%20World!,768
{+path,x}/here /foo/bar,1024/here
{+path:6}/here /foo/b/here
{+list} red,green,blue
{+keys} semi,;,dot,.,comma,,
{+keys*} semi=;,dot=.,comma=,
{#var} #value
{#hello} #Hello%20World!
foo{#empty} foo#
foo{#undef} foo
{#x,hello,y} #1024,Hello%20World!,768
{#path:6}/here #/foo/b/here
{#keys*} #semi=;,dot=.,comma=,
{.who} .fred
{.who,who} .fred.fred
{.half,who} .50%25.fred
www{.dom*} www.example.com
X{.empty} X.
X{.undef} X
X{.var:3} X.val
X{.list} X.red,green,blue
X{.list*} X.red.green.blue
X{.keys} X.semi,%3B,dot,.,comma,%2C
X{.keys*} X.semi=%3B.dot=..comma=%2C
X{.empty_keys} X
X{.empty_keys*} X
{/who} /fred
{/half,who} /50%25/fred
{/who,dub} /fred/me%2Ftoo
{/var,empty} /value/
{/var,undef} /value
{/var,x}/here /value/1024/here
{/var:1,var} /v/value
{/list*,path:4} /red/green/blue/%2Ffoo
{/keys*} /semi=%3B/dot=./comma=%2C
{;who} ;who=fred
{;half} ;half=50%25
{;empty} ;empty
{;v,empty,who} ;v=6;empty;who=fred
{;v,bar,who} ;v=6;who=fred
{;x,y,empty} ;x=1024;y=768;empty
{;hello:5} ;hello=Hello
{;list} ;list=red,green,blue
{;list*} ;list=red;list=green;list=blue
{;keys*} ;semi=%3B;dot=.;comma=%2C
{?who} ?who=fred
{?half} ?half=50%25
{?x,y,empty} ?x=1024&y=768&empty=
{?x,y,undef} ?x=1024&y=768
{?var:3} ?var=val
{?list} ?list=red,green,blue
{?list*} ?list=red&list=green&list=blue
{?keys} ?keys=semi,%3B,dot,.,comma,%2C
{?keys*} ?semi=%3B&dot=.&comma=%2C
{&who} &who=fred
?fixed=yes{&x} ?fixed=yes&x=1024
{&x,y,empty} &x=1024&y=768&empty=
{&list*} &list=red&list=green&list=blue
"""


@pytest.mark.requirement("R5-27")
@pytest.mark.parametrize("line", EXAMPLES.strip().splitlines())
def test_the_examples_of_the_rfc(line: str):
    template, expected = line.split(" ")
    assert UriTemplate.parse(template).expand(VALUES) == expected


@pytest.mark.requirement("R5-27")
def test_variables_stand_once_and_in_order():
    found = UriTemplate.parse("repo://{owner}/{name}{?tags*,page:3}{#owner}").variables
    assert [(one.name, one.explode, one.prefix) for one in found] == [
        ("owner", False, None),
        ("name", False, None),
        ("tags", True, None),
        ("page", False, 3),
    ]


def test_what_is_not_ascii_is_escaped_once():
    template = UriTemplate.parse("desk://é/{name}{+rest}%20")
    assert template.expand({"name": "smörgås", "rest": "/å%20b"}) == "desk://%C3%A9/sm%C3%B6rg%C3%A5s/%C3%A5%20b%20"


@pytest.mark.parametrize("text", ["{", "a}b", "{}", "{a b}", "{!a}", "{a:0}", "{a*b}", "{a,}", "x" * 9_000])
def test_what_is_no_template_says_so(text: str):
    with pytest.raises(BadTemplate):
        UriTemplate.parse(text)


@pytest.mark.requirement("R5-27")
@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("{+a:3}", {"a": "é/ü%20"}, "%C3%A9/%C3%BC"),
        ("{#a:4,a}", {"a": "é%20x"}, "#%C3%A9%20,%C3%A9%20x"),
        ("{+a,0}", {"a": "1", "0": "2"}, "1,2"),
        ("{a:1,a:3}", {"a": "value"}, "v,val"),
        ("{?pairs*}", {"pairs": {"z": "1", "a": "2"}}, "?z=1&a=2"),
        ("{;pairs*}", {"pairs": {"z": "", "a": "="}}, ";z;a=%3D"),
        ("{;list*}", {"list": ["", "b"]}, ";list;list=b"),
        ("{?list*}", {"list": ["", "b"]}, "?list=&list=b"),
        ("{;none,a}", {"none": [], "a": "1"}, ";a=1"),
        ("{a}{+a}", {"a": "\ud800"}, "??"),
        ("{a%20b.c}", {"a%20b.c": "1"}, "1"),
    ],
)
def test_where_the_library_has_to_be_helped(template: str, values: dict[str, Value], expected: str):
    assert UriTemplate.parse(template).expand(values) == expected.replace("??", "%3F?")


@pytest.mark.requirement("H03")
def test_h03_values_have_a_size_together():
    many = UriTemplate.parse("{a}{+a}{?a*}" * 600)
    began = time.monotonic()
    assert len(many.expand({"a": "x" * 500})) > 900_000
    for value in ("x" * 9_000, ["x" * 9_000], {"x" * 9_000: ""}, {"": "x" * 9_000}):
        with pytest.raises(BadTemplate, match="longer than 1,000,000 characters"):
            many.expand({"a": value})
    assert time.monotonic() - began < 5
