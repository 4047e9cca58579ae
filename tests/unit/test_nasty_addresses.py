"""Which host an address names, for a person who decides by it: never another one than a browser would open."""

import pytest

from app.core import links
from tests.unit.addresses import ADDRESSES


@pytest.mark.requirement("H07")
@pytest.mark.parametrize(("address", "host"), ADDRESSES)
def test_h07_an_address_names_the_host_that_is_opened_or_is_refused(address: str, host: str | None):
    link = links.read(address)
    assert (link and link.host) == host
    findings = links.url_findings(address)
    assert ("R4-44" in {one.id for one in findings}) == (link is None)
    if link is not None:
        assert link.href == link.before + link.host + link.after
        assert link.href.isascii()
        again = links.read(link.href)
        assert again is not None and (again.href, again.host) == (link.href, link.host)
        assert ("user name" in "".join(one.text for one in findings)) == link.user


@pytest.mark.requirement("H07")
@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("http://localhost:1/", True),
        ("http://a.localhost/", True),
        ("http://127.8.9.1/", True),
        ("http://[::1]/", True),
        ("http://0.0.0.0/", True),
        ("http://[::]/", True),
        ("https://localhost.example/", False),
        ("https://128.0.0.1/", False),
        ("https://[2001:db8::1]/", False),
    ],
)
def test_h07_an_address_says_whether_it_leads_back_to_this_machine(address: str, loopback: bool):
    link = links.read(address)
    assert link is not None
    assert link.loopback is loopback
