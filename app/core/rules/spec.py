"""Where the specification says what a finding holds against a server: the section for each rule, and a name for it."""

from __future__ import annotations

from typing import Final, NamedTuple

_SPECIFICATION: Final = "https://modelcontextprotocol.io/specification/"

SECTIONS: Final = {
    "R1-82": "2025-11-25/basic/utilities/tasks#task-parameters",
    "R1-87": "2025-11-25/basic/utilities/tasks#ttl-and-resource-management",
    "R2-01": "2025-11-25/basic/utilities/tasks#tool-level-negotiation",
    "R2-02": "2025-11-25/basic/utilities/tasks#tool-level-negotiation",
    "R2-04": "2025-11-25/basic/utilities/tasks#tool-level-negotiation",
    "R2-07": "2025-11-25/basic/utilities/tasks#task-support-and-handling",
    "R2-08": "2025-11-25/basic/utilities/tasks#task-status-lifecycle",
    "R2-22": "2025-11-25/basic/utilities/tasks#related-task-metadata",
    "R2-23": "2025-11-25/basic/utilities/tasks#task-execution-errors",
    "R2-32": "2025-11-25/basic/utilities/tasks#task-progress-notifications",
    "R2-41": "2025-11-25/basic/utilities/tasks#task-cancellation",
    "R3-04": "2025-11-25/client/sampling#tools-in-sampling",
    "R3-05": "2025-11-25/client/sampling#messages",
    "R3-06": "2025-11-25/client/sampling#tool-result-messages",
    "R3-07": "2025-11-25/client/sampling#tool-use-and-result-balance",
    "R3-11": "2025-11-25/client/sampling#creating-messages",
    "R3-12": "2025-11-25/client/sampling#creating-messages",
    "R3-21": "2025-11-25/client/sampling#security-considerations",
    "R4-02": "2025-11-25/client/elicitation#elicitation-requests",
    "R4-03": "2025-11-25/client/elicitation#error-handling",
    "R4-04": "2025-11-25/client/elicitation#requested-schema",
    "R4-10": "2025-11-25/client/elicitation#requested-schema",
    "R4-13": "2025-11-25/client/elicitation#form-mode-security",
    "R4-40": "2025-11-25/client/elicitation#safe-url-handling",
    "R4-43": "2025-11-25/client/elicitation#safe-url-handling",
    "R4-44": "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    "R4-46": "2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation",
    "R4-48": "2025-11-25/client/elicitation#url-elicitation-required-error",
    "R4-49": "2026-07-28/client/elicitation#url-mode-elicitation-requests",
    "R5-01": "2025-11-25/basic/index#messages",
    "R5-02": "2025-11-25/basic/lifecycle#initialization",
    "R5-03": "2025-11-25/basic/lifecycle#version-negotiation",
    "R5-04": "2025-11-25/basic/lifecycle#operation",
    "R5-21": "2025-11-25/server/utilities/completion",
    "R5-22": "2025-11-25/server/utilities/logging",
    "R5-23": "2025-11-25/basic/utilities/progress",
    "R5-24": "2025-11-25/basic/utilities/cancellation",
    "R5-25": "2025-11-25/basic/utilities/ping",
    "R5-26": "2025-11-25/server/utilities/pagination",
    "R5-27": "2025-11-25/server/resources",
    "R5-28": "2025-11-25/basic/lifecycle#capability-negotiation",
    "R5-29": "2025-11-25/server/tools",
    "R5-30": "2025-11-25/server/prompts",
    "R5-40": "2025-11-25/basic/transports#stdio",
    "R5-41": "2025-11-25/basic/transports#sending-messages-to-the-server",
    "R5-42": "2025-11-25/basic/transports#listening-for-messages-from-the-server",
    "R5-45": "2025-11-25/basic/transports#session-management",
    "R5-47": "2025-11-25/basic/transports#backwards-compatibility",
    "R6-01": "2026-07-28/changelog#major-changes",
    "R6-04": "2026-07-28/basic/index#resulttype",
    "R6-05": "2026-07-28/basic/transports/streamable-http#sending-messages",
    "R6-06": "2026-07-28/server/discover",
    "R6-07": "2026-07-28/basic/versioning#protocol-version-negotiation",
    "R6-08": "2026-07-28/basic/index#error-codes",
    "R6-11": "2026-07-28/basic/index#json-schema-usage",
    "R6-23": "2026-07-28/basic/transports/streamable-http#schema-extension",
    "R6-30": "2026-07-28/basic/patterns/mrtr#supported-requests",
    "R6-31": "2026-07-28/basic/patterns/mrtr#client-requirements-basic-workflow",
    "R6-32": "2026-07-28/basic/patterns/mrtr#client-requirements-basic-workflow",
    "R6-40": "2026-07-28/basic/patterns/subscriptions#opening-a-stream",
    "R6-41": "2026-07-28/basic/patterns/subscriptions#acknowledgment",
    "R6-42": "2026-07-28/basic/patterns/subscriptions#receiving-notifications",
    "R6-43": "2026-07-28/basic/patterns/subscriptions#cancellation",
    "R6-45": "2026-07-28/basic/transports/streamable-http#receiving-messages",
    "R6-51": "2026-07-28/server/utilities/logging",
    "R7-03": "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md#capability-negotiation",
    "R7-11": "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md#task-status",
    "R7-20": "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md#task-update-requests",
}
"""The section of each rule that a finding may name; below the specification, unless a whole address stands there."""


class Section(NamedTuple):
    """A section of the specification, to open and to name."""

    url: str
    words: str


def section(rule: str) -> Section | None:
    """Where a rule stands; None for what is Parley's own remark."""
    place = SECTIONS.get(rule)
    if place is None:
        return None
    path, _, anchor = place.partition("#")
    page = path.removesuffix("/index").removesuffix(".md").rpartition("/")[2]
    words = ", ".join(part.replace("-", " ").replace("_", " ") for part in (page, anchor) if part)
    return Section(place if place.startswith("https:") else _SPECIFICATION + place, words)
