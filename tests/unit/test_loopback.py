"""Which hosts are the person's own machine."""

import pytest

from app.core.loopback import is_own_machine


@pytest.mark.requirement("H01")
@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST", "localhost.", "app.localhost", "127.0.0.1", "127.9.9.9", "127.1", "127.0.1"),
        *("2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0.0.0.0", "0", "[::1]", "::1", "[::]"),
        *("[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]"),
    ],
)
def test_h01_every_spelling_of_the_own_machine_is_known(host: str):
    assert is_own_machine(host)


@pytest.mark.requirement("H01")
@pytest.mark.parametrize(
    "host",
    [
        *("", "example.org", "localhost.example.org", "notlocalhost", "127.0.0.1.example.org", "128.0.0.1", "10.0.0.1"),
        *("[2001:db8::1]", "[::ffff:10.0.0.1]", "a b", "1.2.3.4.5", "xn--localhost-"),
    ],
)
def test_h01_other_hosts_are_others(host: str):
    assert not is_own_machine(host)
