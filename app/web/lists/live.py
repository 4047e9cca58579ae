"""Lists on a page, as they live: the tab fetches them, for only the tab knows what is searched in them."""

from __future__ import annotations

from app.web.kit.html import Html
from app.web.live.parts import Each, View, refetch


def refetched(page: str, path: str, *also: str) -> Each:
    """The list of a page, whose element has the name of the page; `also` names events that touch it besides."""

    def draw(view: View, *_: object) -> Html:
        return refetch(f"{view.base}/{path}", f"#{page}", "#list-q, #list-page")

    return Each(("listing.changed", "connection.changed", *also), lambda *_: "", draw, draw)
