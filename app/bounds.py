"""Sizes and waits that nobody can set: what code without settings is written around, and what a wire needs.

`settings.Limits` has the ones that a person may set. Together they keep the promise that stands there: no queue,
buffer, list or wait is larger than a number in one of the two. What only says how something is written (the width of a
row, the cut of a label) stands beside the code that writes it. Knows nothing else.
"""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

# ------------------------------------------------------------------------------------------------------------- JSON

THREAD_ABOVE = 256 * KIB
"""Larger texts are parsed in a worker thread, so that nobody else waits for them."""
JSON_DEPTH = 400
"""Deeper nesting is not read: everything after us (repr, validators, templates) walks values by recursion."""
JSON_SEPARATORS = 750_000
"""A text with more commas, colons and opening brackets is not built: up to here that holds the interpreter for 0.1 s
at the most, and takes some 50 MB; 20,000 objects of a dozen members each are less."""
JSON_DUPLICATES_UP_TO = MIB
"""In a larger text of a server nobody looks for keys that stand twice."""
JSON_DIGITS = 3_999
"""Of an integer, its sign counted; from 4,300 on, Python refuses to read and to write it."""
JSON_LONG_DIGITS = 200_000
"""How many digits of very long integers are read as numbers, in all."""
HEAD_MEMBERS = 1_000
HEAD_BYTES = 256 * KIB
HEAD_VALUE_BYTES = 16 * KIB
"""How much of a text that is not built is read all the same, in all and at one place."""
BROKEN_HEAD_BYTES = 256 * KIB
BROKEN_HEAD_TOKENS = 20_000
BROKEN_HEAD_OBJECTS = 20
"""How much of a message that cannot be read is looked at, by its bytes and its parts: some milliseconds of work."""
DIFFERENCES = 20
"""Places that a comparison names."""

# ---------------------------------------------------------------------------------------------- schemas and forms

SCHEMA_SIZE = 512 * KIB
"""About the characters of the schema as JSON."""
SCHEMA_DEPTH = 200
VALUE_DEPTH = 200
"""Of a value that is held against a schema."""
CHECK_STEPS = 5_000_000
"""A value that may cost more steps is not checked: so many take 0.05 s, and 0.3 s where patterns are tried out."""
EXPLAIN_STEPS = 100_000
"""Up to here every misfit is pointed at: explaining one costs far more than finding it."""
CHECK_ERRORS = 100
SCHEMA_CHAIN = 150
"""Schemas that are met at one place because one leads to the next: a validator may go down a stack with them."""
SCHEMA_MERGED = 500_000
"""Schemas and keys of properties that are looked at to count what meets one member."""
BACKTRACKS = 20_000
"""How often the matching of one pattern may try anew before the validator gives up on it."""
SCHEMA_FOLLOWED = 20_000
"""References and parts that are followed for one form."""
SCHEMA_HOPS = 50
ALTERNATIVES = 50
TITLED_OPTIONS = 500
"""Options that get a title; nobody draws a list of more."""
DRAWN_FIELDS = 600
FORM_NAME = 500
"""Characters of a name and of all names around it: a field says them several times."""
FORM_DEPTH = 20
FORM_OPTIONS = 5_000
FORM_CHECKBOXES = 40
FORM_ITEMS = 200
FORM_KEPT = 500
"""Texts kept for alternatives that are not drawn."""
LOOKED_AT_DEPTH = 3
"""How far inside a value its looks tell to which alternative it belongs."""

# --------------------------------------------------------------------------------------------------------- findings

POINTER = 1_000
"""Characters of a pointer that a finding carries."""
HIDDEN_PLACES = 3
HIDDEN_WEIGHED = 200
"""Places with hidden text of which the gravest are named."""
HIDDEN_LOOKED_AT = 20_000
"""Values of one message in which hidden characters are looked for, once its bytes say that there may be some; a long
text counts for many."""
HIDDEN_RUNS = 20_000
"""Runs of one text that are held against what is calm; those beyond are found by nobody, and drawn as one sign."""
PARTS_CHECKED = 500
"""Pictures, sounds and blobs of a result that are looked at for base64."""
SAMPLING_MESSAGES_CHECKED = 100
SECRET_JSON = 64 * KIB
SECRET_DEPTH = 4
"""Up to which size and how deep the JSON inside of a text is searched for secrets."""

# --------------------------------------------------------------------------------------- targets, links and tasks

TARGET_ARGUMENTS = 128 * KIB
TARGET_ENVIRONMENT = MIB
"""A system starts no process with more than about two of these."""
TARGET_HEADERS = 256 * KIB
TARGET_NAME = 4096
TARGET_LABEL = 1000
TEMPLATE = 8_000
TEMPLATE_VALUES = 1_000_000
"""Characters of all values together, each counted as often as the template of an address names it."""
REQUIRED_LINKS = 20
LINK = 8_192
"""Characters of an address that a person is asked to open."""
TASK_PAGE = 50
"""Tasks on one page of `tasks/list`."""
TASK_OPERATIONS = 100.0
"""Task operations a second that one connection may ask for, in the long run; bursts up to ten times that."""
TASK_VISITS = 500
"""What is remembered of the life of one task; of very many polls the oldest are forgotten."""
TASK_WORDS = 2_000
TASK_MS = 10**15
"""The longest time that a task can speak of."""
POLL_MS = 1_000
"""Between two polls when the server does not say (R2-10)."""
FASTEST_POLL_MS = 500
"""We never poll faster, whatever the server says (F18)."""
POLL_REST_SECONDS = 86_400.0
"""Without a poll, whatever the server says."""
FAILED_POLLS = 5
"""So many polls in a row without a usable answer, and we stop."""
TASK_FETCHES = 3
"""How often the result of a task that has ended is asked for, when its reply is lost on the way."""
TASKS_KEPT = 1_000
"""Tasks remembered, of ours, of a list, or that we execute."""
TASK_IMMEDIATE = 20_000
"""Characters of what a model is to hear at once."""
EARLY_NOTICES = 200
"""Notifications kept for tasks that we do not know yet."""
EARLY_NOTICE_BYTES = 16 * KIB
"""A larger one is not kept: polling finds out what it said."""

# --------------------------------------------------------------------------------------------------------- sessions

CALL_MS = 24 * 3_600_000
"""No call lasts longer, whatever its progress says (R5-05). `tasks/result` may block as long as the task (R2-21)."""
OPTION_MS = 30 * CALL_MS
"""Nothing that a connection waits for or keeps needs more than a month; far larger numbers are no dates (H12)."""
PROGRESS_WORDS = 1_000
STEPS = 50
"""Steps that are said of how a connection came about."""
OUTSTANDING = 10_000
"""Requests of either side that the log waits for the reply of."""
PROBE_GRACE_SECONDS = 2.0
"""In which stderr may still speak of a probe that was answered."""
GIVE_BACK_SECONDS = 1.0
"""How long after large work its memory is given back: what was made is in use for a moment."""
CONSENTS = 1_000
REAP_SECONDS = 5.0
CALM_SECONDS = 5.0
CALM_REST_SECONDS = 1.0
"""After a connection there is its first page, and its lists."""
PING_AT_LEAST_MS = 1_000
PING_AT_MOST_MS = 3_600_000
WATCHED_RESOURCES = 1_000
"""Resources of which a notice is remembered; the oldest are forgotten first."""
WATCHED_URI = 8_000
SERVER_LOG_LINES = 2_000
SERVER_LOG_TEXT = 2_000
SERVER_LOGGERS = 200
SUBSCRIPTIONS_KEPT = 100
SUBSCRIPTIONS_OPEN = 20
SUBSCRIPTION_EVENTS = 200
SUBSCRIPTION_SECONDS = 10 * 365 * 86_400.0
"""For ever."""
COMPARED_MESSAGES = 500
COMPARED_SECONDS = 0.25
"""How often a page hears of the other session at most: its events are not ours."""
ASKS_NOTED = 500
"""Asks that a call or a task remembers to have caused."""
ROUND_PAUSE_SECONDS = 0.1
ROUND_PAUSE_AT_MOST = 1.0
"""Between rounds that ask nothing: a server that only wants to be called again must not make us spin."""

# ------------------------------------------------------------------------------------------------------- transports

STDERR_AT_ONCE = 256
"""Lines of stderr kept before others get their turn."""
AFTER_EXIT_SECONDS = 0.5
"""A child that ended may have left bytes in the pipe; a grandchild that holds the pipe open may not keep us waiting."""
LINK_QUEUE = 64
"""Frames that HTTP has brought and nobody has taken yet; then its streams wait."""
STREAM_SLICE = 4 * KIB
"""How much of a chunk is parsed at once; others get their turn between two slices."""
SHORT_READ_SECONDS = 30.0
"""Silence that is too long for the answer to a notification or a reply; nobody is thinking there."""
RETRY_SECONDS = 1.0
"""Before a stream is opened again, when the server does not say."""
RETRY_AT_LEAST = 0.02
"""A server may ask us back at once, and still must not make us spin."""
RETRY_AT_MOST = 30.0
STEADY_SECONDS = 20.0
"""A stream that was open so long did not fail, though nothing came."""
RESUMES = 5
"""How often the stream of an answer is resumed without anything new."""
GOODBYE_SECONDS = 2.0
LINGER_SECONDS = 10.0
"""How long the POST of a request that nobody waits for any more may go on: late replies are worth seeing, idle sockets
are not."""
SERVER_ADDRESS = 8 * KIB
"""An address that a server names, in `Location` or as `endpoint`; of a longer one only the length is looked at."""
REFUSAL_BYTES = 64 * KIB
"""How much of an answer that is no message is read."""

LATEST_RESULT_BYTES = 16 * KIB
"""Up to here the last result of a session is kept as it was read, for whoever looks at it at once."""

PARTS_PER_PATCH = 60
"""Cards or rows of calls that one message to a tab carries at most; more than that makes it a snapshot."""
DRAWN_PARTS = 400
DRAWN_CHARACTERS = 4 * MIB
"""What is kept of parts that were drawn for one tab, for the other tabs of the session."""
