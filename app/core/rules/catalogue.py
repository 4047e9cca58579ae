"""Every finding that Parley can raise: the requirement it speaks of, how grave it is, what is the case, what follows.

To add one, write an entry here and call it where it is decided: `catalogue.late_reply(fate="cancelled")`. What stands
in braces is filled by the names of the call, as `str.format` does it: `{method!s:.60}` cuts what a server may have made
long. Nothing here decides anything: that is for the modules beside this one, and for whoever knows what happened.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from app.core.wire import Finding, Level


class Entry(NamedTuple):
    """One kind of finding. Its texts have places to fill; where its rule is one, the caller knows which it is."""

    level: Level
    rule: str
    text: str
    advice: str = ""

    def __call__(self, *, pointer: str | None = None, **values: object) -> Finding:
        """The finding with its places filled, and where it points to. Raises KeyError when a place is not given."""
        rule, text, advice = (each.format_map(values) for each in (self.rule, self.text, self.advice))
        return Finding(rule, self.level, text, advice, pointer=pointer)


def entries() -> dict[str, Entry]:
    """All of them by name, in the order of this file."""
    return {name: one for name, one in globals().items() if isinstance(one, Entry)}


_must, _should, _note = partial(Entry, "must"), partial(Entry, "should"), partial(Entry, "note")

# --------------------------------------------------------------------------------------------- frames: a line or a body

sloppy_json = _must("R5-01", "{remark}", "Send plain UTF-8 JSON, each key once.")
unread = _note("{rule}", "{why}", "It is kept whole. Send large content in pages, or as a resource.")
beyond_our_limit = _note("{rule}", "{problem}", "The server may be right. It is shown as it came.")
stray_line = _must("R5-40", "{problem}", "A server writes nothing but messages to stdout; print to stderr.")
broken_line = _must("R5-40", "{problem}", "A message is one line of UTF-8 JSON, and nothing else stands on that line.")
broken_body = _must(
    "R5-41", "{problem}", "The body of an answer, or the data of an event, is one message and nothing else."
)
empty_line = _note("R5-40", "The server wrote an empty line.", "Harmless here; other clients may stumble.")
empty_answer = _must("R5-41", "The answer is empty.", "A request is answered with a message.")
oversized = _note(
    "{rule}",
    "This {what} is longer than {mib:g} MiB (at least {size} bytes), so it was not read.",
    "Only its beginning is kept. Send large content as a resource, or in pages.",
)
batch = _must(
    "R5-01",
    "This is a batch. Only 2025-03-26 has batches; this connection speaks {version}.",
    "Its members were not acted on. Send each message on its own line.",
)

# ------------------------------------------------------------------------------------------------- frames: JSON-RPC 2.0

_STRANGER = "A strict client may drop the connection here."
no_message = _must("R5-01", "This is {what}, not a JSON-RPC message.", _STRANGER)
other_jsonrpc = _must("R5-01", '`jsonrpc` must be "2.0" and is {said!s:.40}.', _STRANGER)
improper_id = _must("R5-01", "The id {rpc_id!s:.40} is neither a string nor an integer.", _STRANGER)
no_member = _must("R5-01", "There is no `method`, no `result` and no `error` in this message.", _STRANGER)
method_no_string = _must("R5-01", "`method` is not a string.", _STRANGER)
params_no_object = _must("R5-01", "`params` is not an object; MCP has only named parameters.", _STRANGER)
request_and_reply = _must("R5-01", "A message with `method` carries no `result` and no `error`.")
result_and_error = _must("R5-01", "A reply has a `result` or an `error`, not both.", _STRANGER)
reply_without_id = _must("R5-01", "This reply has no id, so nobody knows what it answers.", _STRANGER)
result_no_object = _must("R5-01", "`result` is not an object; every MCP result is one.", "It is shown as it came.")
error_no_object = _must("R5-01", "`error` is not an object with `code` and `message`.", _STRANGER)
error_incomplete = _must("R5-01", "`error` needs an integer `code` and a string `message`.", "Shown as it came.")

# ---------------------------------------------------------------------------------------------------- hidden characters

_UNSEEN = "A person does not see it, and a model reads it. Parley shows it as a mark."
_HIDDEN = "`{where}` holds {many}: {kinds}."
hidden_words = _should(
    "H08", "`{where}` holds hidden text, written in characters that do not show: “{words}”.", _UNSEEN
)
hidden_and_grave = _should("H08", _HIDDEN, _UNSEEN)
hidden = _note("H08", _HIDDEN, _UNSEEN)
hidden_once_more = _note(
    "H08", "1 more text of this message holds characters that do not show.", "Parley shows each as a mark."
)
hidden_often = _note(
    "H08", "{others} more texts of this message hold characters that do not show.", "Parley shows each as a mark."
)
hidden_beyond = _note(
    "H08",
    "This message holds characters that do not show, beyond the values that were looked at.",
    "Parley shows each as a mark.",
)

# ---------------------------------------------------------------------------------------------- replies to our requests

unknown_reply = _must("R5-01", "No request of ours has the id {rpc_id!s:.60}.", "It was ignored.")
second_reply = _must("R5-01", "This request was answered before; a request has one reply.", "It was ignored.")
late_reply = _note(
    "R5-24", "This reply came after the request was {fate}.", "It was ignored, as the specification asks."
)
id_as_string = _must("R5-01", 'The id came back as the string "{rpc_id}"; it was the number {rpc_id}.')
reply_unasked = _must(
    "R5-42",
    "This reply came on the GET stream, which carries only requests and notifications of the server.",
    "It was taken all the same. Answer a request with the answer to its POST.",
)
version_chosen = _note("R5-03", "Parley asked for {asked}, the server chose {got}.", "Both go on with that.")
version_without_initialize = _should(
    "R5-03",
    "The server answered `initialize` with {got}, a revision that has no `initialize`.",
    "Answer with 2025-11-25 or older.",
)
version_unknown = _should("R5-03", "The server answered with the revision {got!s:.60}, which Parley does not speak.")
result_misfit = _must(
    "{rule}",
    "This result of `{method}` does not fit {version}: {complaints}.",
    "A strict client refuses it. It is shown as it came.",
)
not_base64 = _must("{rule}", "`{where}` is not base64.", "A client cannot decode it. It is shown as it came.")
too_many_suggestions = _must(
    "R5-21", "{count} values are suggested; at most 100 are allowed.", "The first 100 are shown."
)

# ---------------------------------------------------------------------------------------------------- structured output

_REFUSES = "A strict client refuses this result."
output_missing = _must(
    "R5-29", "The tool declares an output schema, and its result has no `structuredContent`.", _REFUSES
)
output_misfit = _must("R5-29", "`{where}` does not fit the output schema: {what!s:.300}.", _REFUSES)
output_misfit_somewhere = _must(
    "R5-29", "`structuredContent` does not fit the output schema; it is too large to say where.", _REFUSES
)
output_schema_unusable = _note(
    "R6-11",
    "The output schema cannot be used: {cause}.",
    "Parley fetches nothing on a server's word, so this result was not checked.",
)
output_too_costly = _note(
    "R5-29", "{why!s} So this result was not checked.", "Use a smaller schema, with fewer references and alternatives."
)
output_unchecked = _note("R6-11", "This result cannot be checked: {why!s:.200}.")

# ----------------------------------------------------------------------------------------------- requests of the server

reused_id = _must(
    "R5-01",
    "The server's id {rpc_id!s:.60} is already in use by a request that is still open.",
    "Both are handled, and their replies cannot be told apart by the server.",
)
early_request = _should(
    "R5-02",
    "The server sent the request `{method!s:.60}` before the handshake was over.",
    "Until `notifications/initialized` it should send nothing but pings and log messages.",
)
not_agreed_yet = _note(
    "R5-04",
    "Parley answered `{method!s:.60}` with -32601: nothing is agreed before the handshake is over.",
    "Ask again after `notifications/initialized`.",
)
not_handled = _note(
    "R5-04",
    "Parley does not handle `{method}` on this connection and answered -32601.",
    "Offer the capability in the connection's options, or see the release notes for what is handled yet.",
)
not_answered = _note(
    "R5-25",
    "Parley gave no answer: too many answers already wait for the server to read them.",
    "Read stdin while requests are open.",
)
not_served = _note("R5-25", "Parley answered that this request is too much to read.", "Ask for less at a time.")
refused_params = _must("{rule}", "{why}.", "Parley answered -32602, and nobody was asked.")
null_member = _should("{rule}", "`{name}` is null; it is given, or absent.", "Taken as absent.")
null_task = _should("R1-82", "`task` is null; it is an object, or absent.", "Taken as a plain request.")

# -------------------------------------------------------------------------------------------------------- notifications

not_heard = _note("R5-01", "This notification is too much to read, so it was not acted on.")
notification_misfit = _must("{rule}", "{what}", "A strict client drops this notification.")
cancels_ours = _must(
    "R5-24",
    "This cancels request {rpc_id!s:.60}, which is not the server's own but ours.",
    "It was ignored. A side cancels only what it asked; a request that cannot be served is answered with an error.",
)
progress_no_number = _must("R5-23", "`progress` is {said!s:.40}, not a number.", "It was ignored.")
progress_falls = _must("R5-23", "Progress went from {before:g} to {now:g}; it must rise with every notification.")
progress_unasked = _must("R5-23", "No active request of ours has this progress token.", "It was ignored.")
progress_of_ended_task = _must("R2-32", "Progress for a task that has ended.", "It was ignored.")
progress_on_its_way = _note("R5-23", "This progress came after the request was {fate}.", "It was ignored.")
progress_after_reply = _must("R5-23", "Progress for a request that was already answered.", "It was ignored.")

# ---------------------------------------------------------------------------------------------------------------- lists

list_incomplete = _note("R5-26", "{why}", "Follow the cursor by hand if you need more.")
list_change_undeclared = _note(
    "R5-28",
    "The server sends `{method}` and did not declare `{capability}.listChanged`.",
    "The list is read again all the same. Other clients may not listen: declare it.",
)
restless_list = _note(
    "R5-28",
    "The server says again and again that its list changed while `{method}` reads it, or right after.",
    "Parley reads it again after a pause that grows, up to a minute. A client without that would never stop: send "
    "the notification only when the list has changed.",
)
tool_rejected = _must(
    "R6-23", "The tool `{name!s:.100}` is rejected: {why!s:.300}.", "Correct its `x-mcp-header` annotations."
)

# ---------------------------------------------------------------------------------------- sent because a person insists

not_offered = _note(
    "R5-04",
    "The server did not declare `{capability}`, so `{method}` was sent by force.",
    "A server may refuse it, and would be right.",
)
gone_method = _note(
    "R6-01",
    "`{method}` does not exist in 2026-07-28; it was sent by force.",
    "A server answers -32601, and would be right.",
)
misfit_arguments_sent = _note(
    "R5-29", "Sent on purpose although the arguments do not fit the input schema.", "{misfits}"
)
required_argument_left_out = _note(
    "R5-30", "Sent on purpose without a required argument.", "Missing: {missing!s:.300}."
)

# ----------------------------------------------------------------------------------------------------------------- HTTP

other_content_type = _must(
    "R5-41",
    "This answer {found}; a request is answered with application/json or text/event-stream.",
    "Other clients refuse it. Parley took it all the same.",
)
reply_with_202 = _should(
    "R5-41",
    "This reply came with the status 202, which means that there is none.",
    "Other clients do not read it. Answer a request with 200.",
)
reply_with_status = _note(
    "R5-41", "This reply came with the status {status}.", "A request is usually answered with 200."
)
accepted_with_status = _must(
    "R5-41",
    "The server answered this {kind} with {status}; it accepts one with 202 and no body.",
    "Other clients may wait for more, or take it for a failure.",
)
accepted_without_reply = _must("R5-41", "The server accepted this request (202) and answered nothing.")
other_event_type = _should(
    "{rule}",
    "This message came as an event of the type `{event!s:.60}`.",
    "Other clients drop it: messages are events of the type `message`, or of none.",
)
improper_session_id = _must("R5-45", "The session id is not made of visible ASCII characters.", "It is not used.")
post_failed = _note("R5-41", "{message}", "{advice}")

# --------------------------------------------------------------------------------------- 2026-07-28: results and errors

result_type_missing = _must(
    "R6-04",
    "The result has no `resultType`; in 2026-07-28 every result says which kind it is.",
    "It is taken as complete, as clients do.",
)
result_type_unknown = _must(
    "R6-04",
    "`resultType` is {said!s:.60}, which this client did not ask for.",
    "A client takes this as an invalid response. It is shown as it came.",
)
input_required_elsewhere = _must(
    "R6-30",
    "`{method}` was answered with `input_required`; only tools/call, prompts/get and resources/read may be.",
    "Nobody was asked, and nothing was sent again.",
)
task_elsewhere = _must(
    "R7-03", "`{method}` was answered with a task, and only tools/call may be.", "This is no valid response."
)
task_undeclared = _must(
    "R7-03",
    "`tools/call` was answered with a task, and this client did not declare io.modelcontextprotocol/tasks.",
    "This is no valid response.",
)
server_request = _must(
    "R6-05",
    "The server sent the request `{method!s:.60}`; in 2026-07-28 servers send none.",
    "It was not answered. Return `input_required` from tools/call, prompts/get or resources/read instead.",
)
unasked_log = _must(
    "R6-51",
    "No request asked for log messages, and this is one.",
    "Set a log level in the options to ask for them; the server may send none without.",
)
missing_capability = _note(
    "R6-08",
    "The server wants capabilities that this connection does not declare{named}.",
    "Switch them on in the connection's options, then connect again.",
)
version_contradicted = _note(
    "R6-07",
    "The server refuses {ours} (-32022), and names it among the revisions that it speaks.",
    "Call again, or look at the server: it contradicts itself.",
)
version_refused = _note("R6-07", "The server no longer takes {ours}: it {said}.", "Connect again to agree anew.")
_HEADERS = "The server says that the headers do not fit the body."
header_mismatch = _note(
    "R6-08", _HEADERS, "Parley read the tools again and sent the request once more with new headers."
)
header_mismatch_again = _note(
    "R6-08", _HEADERS, "Parley sends such a request again only once. Look at the headers of both requests."
)
url_error = _must(
    "R4-49",
    "Error -32042 does not exist in 2026-07-28.",
    "Return `input_required` with an elicitation in url mode instead.",
)

# ------------------------------------------------------------------------------------------- 2026-07-28: input required

input_requests_no_object = _must("R6-31", "`inputRequests` is not an object with a request for each key.")
request_state_no_string = _must("R6-32", "`requestState` is not a string.", "It is sent back as it came, all the same.")
input_required_empty = _must("R6-31", "There is neither `inputRequests` nor `requestState` in this result.")
unanswerable = _must("R4-03", "{why!s}", "Nothing was invented, nothing sent.")

# -------------------------------------------------------------------------------------------- 2026-07-28: subscriptions

granted_less = _note("R6-41", "The server does not tell of {missing!s:.300}.", "It granted the rest.")
not_asked_for = _must("R6-41", "This subscription did not ask for `{method!s:.60}`.")
before_acknowledgement = _must("R6-42", "`{method!s:.60}` came before the subscription was acknowledged.")
after_the_end = _note("R6-43", "`{method!s:.60}` came after the subscription had ended.", "Perhaps on its way.")
no_subscription = _must(
    "R6-42",
    "`{method!s:.60}` names no subscription.",
    "In 2026-07-28 each carries `io.modelcontextprotocol/subscriptionId`, or nobody knows who asked for it.",
)
unknown_subscription = _must("R6-42", "No subscription of ours has the id {number!s:.60}.")
not_on_this_stream = _must("R6-45", "`{method!s:.60}` does not belong on a subscription.")

# --------------------------------------------------------------------------------------------- sampling and elicitation

context_undeclared = _should(
    "R3-11", "It asks for the context of {context}, which this client did not declare.", "The context is not included."
)
many_tool_rounds = _note("R3-21", "Round {number} of tool use in a row may be a loop.", "Rules leave it to a person.")
asks_for_secret = _must(
    "R4-13",
    "This form seems to ask for a secret (“{secret}”).",
    "Servers must not ask for secrets in a form. Do not type one.",
)
schema_no_object = _must("R4-10", "The requested schema is not an object with properties.", "Answer it as JSON.")
schema_not_flat = _must(
    "R4-10", "Elicitation knows only flat forms; {names} more than that.", "Other clients may refuse it."
)
elicitation_id = _should(
    "R4-49", "`elicitationId` does not exist in 2026-07-28.", "The outcome is learned by the retry."
)
elicitation_unknown = _note("R4-46", "No open link has this elicitation id, or it was done before.", "Ignored.")

# ---------------------------------------------------------------------------------------------------- addresses to open

link_not_web = _must("R4-44", "This is not an http or https address, so it cannot be opened from here.", "Decline it.")
link_ambiguous = _must(
    "R4-44",
    "This is not an http or https address that all browsers read alike, so it cannot be opened from here.",
    "Decline it.",
)
link_with_user = _should("R4-43", "The address has a user name before the host, as tricks do.", "Look twice.")
link_foreign = _should("R4-43", "The host is written in other letters: {host}.", "It may imitate another one.")
link_unencrypted = _should("R4-43", "The address is not encrypted (http).", "Type nothing secret there.")
link_port = _note("R4-43", "The address uses the unusual port {port}.")
links_missing = _must(
    "R4-48",
    "Error -32042 names no address: `data.elicitations` must be a list with at least one.",
    "Ask whoever runs the server where to sign in.",
)
links_entry_broken = _must("R4-48", "`/data/elicitations/{at}` {problem}", "It cannot be opened.")
links_entry_wordless = _must(
    "R4-48",
    "`/data/elicitations/{at}` says no `message`, so nobody knows what it is for.",
    "Look twice before you open it.",
)
links_too_many = _note("R4-48", "It names {count} addresses; {most} are shown.")

# -------------------------------------------------------------------------------- tasks that the server executes for us

task_dropped = _note("R2-02", "Called plainly, not as a task. {why}", "`task` was left out, as it must be.")
task_forced = _note("R2-01", "Sent on purpose against the rules. {why}", "A server may refuse it.")
task_no_object = _must("R2-08", "This is no task object.", "It was ignored.")
task_without_id = _must("R2-08", "The task has no `taskId`.", "Nobody can ask for it; it was ignored.")
task_status_unknown = _must(
    "R2-08", "The status of the task is {shown}, which is none of the five.", "Parley goes on polling."
)
task_incomplete = _must("R2-08", "The task lacks {named}.", "They are required. Parley goes on without.")
task_ttl_improper = _must("R2-08", "`{name}` is no number of milliseconds, nor null.", "Taken as unlimited.")
task_poll_improper = _must("R2-08", "`{name}` is no number of milliseconds.", "Parley polls every {default} ms.")
task_begins_otherwise = _must(
    "R2-08", "The task began with the status `{status}`; it must begin with `working`.", "Followed all the same."
)
task_leaves_its_end = _must(
    "R2-08", "The task went from `{before}` to `{now}`; nothing leaves `{before}`.", "Parley stays with the first end."
)
task_other = _must("R2-08", "The server answered with another task than the one that was asked for.", "It was ignored.")
task_id_known = _must(
    "R2-08", "The server gave this task the id of another one.", "Both are followed; they cannot be told apart."
)
task_ignored = _should(
    "R2-07",
    "The call was sent as a task, and the server answered with an ordinary result.",
    "It is shown as the result; there is no task to follow.",
)
task_unasked = _must(
    "R2-07",
    "The server answered with a task, and the call did not ask for one.",
    "Parley follows it. Another client would show nothing.",
)
task_not_required = _must(
    "R2-04",
    "The tool says `taskSupport: required`, and a plain call was not refused with -32601.",
    "What it answered is shown as its result.",
)
task_not_cancelled = _must(
    "R2-41", "The server answered `tasks/cancel`, and the task is not cancelled.", "Parley goes on polling."
)
task_result_names = _must(
    "R2-22",
    "The result of the task {names} in `_meta` (`io.modelcontextprotocol/related-task`).",
    "A client with several tasks could mix them up.",
)
task_should_have_failed = _note(
    "R2-23", "The result has `isError`, and the task is `completed`; it should be `failed`.", "Shown as is."
)
task_outlives_ttl = _note(
    "F18",
    "The task has not ended within its TTL of {seconds:g} s, and the server still has it.",
    "Parley goes on polling until it ends. The server may delete it at any time now.",
)
task_result_type = _note(
    "R7-11",
    "`resultType` of this status is {said!r:.40}; the rule says `complete`.",
    "The extension's own examples disagree, so both are taken.",
)
task_without_outcome = _must("R7-11", "The task has ended, and there is no `{member}` in it.")
task_without_requests = _must("R7-11", "The task waits for input, and there are no `inputRequests` in it.")
task_request_unanswerable = _must(
    "R7-20",
    "The request `{key!s:.60}` of the task cannot be put to anybody: {why!s}.",
    "Nothing was invented, nothing sent.",
)
