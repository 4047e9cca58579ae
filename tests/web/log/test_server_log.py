"""What the server logs, by level and logger."""

from typing import Any

import pytest

from tests.drive import until
from tests.web.shelf import HTMX, said


@pytest.mark.requirement("R5-22", "R5-40")
async def test_the_log_of_the_server_by_level_and_logger_with_stderr_beside(opened: Any):
    one = await opened()
    assert (await one.form("/options", {"option.log_level": "warning"}, **HTMX)).status == 204
    assert await one.seen("logging/setLevel") == [{"level": "warning"}]
    messages = [said("debug", "small talk"), said("error", {"code": 7, "<b>": 1}, "db"), said("loud", "what", "web")]
    await one.tool("send", messages=messages)
    await until(one.session, lambda: one.session.server_log.count == 3)
    page = await one.page("/logging")
    assert all(words in page for words in ("small talk", '{"code": 7, "<b>": 1}', "loud", "shelf is open"))
    assert "<option selected>warning</option>" in page
    part = await one.page("/logging?level=info", **HTMX)
    assert "small talk" not in part and "loud" in part and "2 of 3" in part
    assert "code" not in await one.page("/logging?logger=web", **HTMX)
    told = await one.json("/logging?logger=db")
    assert [(each["level"], each["logger"], each["text"]) for each in told["messages"]] == [
        ("error", "db", '{"code": 7, "<b>": 1}')
    ]
    assert told["loggers"] == {"": 1, "db": 1, "web": 1} and told["level"] == "warning"
