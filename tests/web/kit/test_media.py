"""Binary content and pages of a server: what is made of them before a browser sees them."""

import html
import time

import pytest

from app.web.kit.media import PAGE_BYTES, page_of, still


@pytest.mark.requirement("M02")
@pytest.mark.parametrize(
    ("page", "served"),
    [
        (b'<link rel=preconnect href="http://x">', b'<link rel=preconnect &#104;ref="http://x">'),
        (b"<A\tHREF \n=\n'x'>", b"<A\t&#72;REF \n=\n'x'>"),
        (b'<use xlink:href="x.svg#y">', b'<use xlink:&#104;ref="x.svg#y">'),
        (b"<use href=\"#y\"><a HREF= '#y'><a href=#y>", b"<use href=\"#y\"><a HREF= '#y'><a href=#y>"),
        (b'<a href="&#35;y"><a href=" #y">', b'<a &#104;ref="&#35;y"><a &#104;ref=" #y">'),
        (b'<set attributeName="href">', b'<set &#97;ttributeName="href">'),
        (b'<set attributeName="&#104;ref">', b'<set &#97;ttributeName="&#104;ref">'),
        (b'<set attributeName="xlink:href">', b'<set &#97;ttributeName="xlink:href">'),
        (b"<set attributename=href>", b"<set &#97;ttributename=href>"),
        (b"<set attributeName='fill'>", b"<set attributeName='fill'>"),
        (b'<meta http-equiv="refresh">', b'<meta &#104;ttp-equiv="refresh">'),
        (b"<IFrame src=x></iframe>", b"<noframes src=x></noframes>"),
        (b"<frameset><frame src=x></frameset>", b"<frameset><basefont src=x></frameset>"),
        (b"<iframes><framed>", b"<iframes><framed>"),
    ],
    ids=lambda text: text.decode()[:40],
)
def test_m02_what_leads_away_is_no_longer_an_address(page: bytes, served: bytes):
    assert still(page) == served


@pytest.mark.requirement("M02")
def test_m02_what_is_only_text_reads_the_same():
    text = 'write <code>&lt;a href="x"&gt;</code>, or attributeName="href", or http-equiv = refresh'
    assert html.unescape(still(text.encode()).decode()) == html.unescape(text)
    plain = b"<p style='color: red'>no address: hrefs, a frame of mind</p>"
    assert still(plain) == plain


@pytest.mark.requirement("M02", "H03")
@pytest.mark.parametrize(
    "piece", [b"href ", b"href=", b"href= #", b'attributename="a', b"attributename=", b"<", b" ", b"</iframe", b"h"]
)
def test_m02_the_largest_page_takes_no_longer_than_its_length(piece: bytes):
    page = (piece * PAGE_BYTES)[:PAGE_BYTES]
    for text in (page, b"href" + page, b"href=" + page, b'attributename="' + page):
        began = time.monotonic()
        still(text)
        assert time.monotonic() - began < 2, "a guard: it takes at most a fifth of a second"


@pytest.mark.requirement("M02")
def test_m02_a_page_that_is_larger_is_shown_as_text_only():
    assert page_of("x" * PAGE_BYTES, "text/html") == b"x" * PAGE_BYTES
    assert page_of("x" * (PAGE_BYTES + 1), "text/html") is None
    assert page_of("ü" * (PAGE_BYTES // 2 + 1), "text/html") is None
    assert page_of("x", "text/plain") is None
