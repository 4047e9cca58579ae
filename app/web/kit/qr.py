"""QR codes, as SVG that stands in the page: no picture is fetched, and no style is needed to draw it."""

from __future__ import annotations

from app.web.kit.html import Html, rendered


def drawn(address: str) -> Html:
    """The code of an address, black on white in every theme: a phone has to read it from across a room."""
    import segno  # on first use: most people never see one

    made = segno.make(address, error="m", micro=False)
    size = made.symbol_size(border=2)[0]
    # One stroke for each run of a row; nothing of it is text that somebody else wrote.
    path = made.svg_inline(border=2, omitsize=True, svgclass=None, lineclass=None).partition("<path")[2]
    head = f'<svg class="qr-code" role="img" aria-label="QR code of the address" viewBox="0 0 {size} {size}">'
    return rendered(f'{head}<rect width="{size}" height="{size}" fill="#fff"/><path{path}')
