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
DIFFERENCE_ROWS = 2_000
DIFFERENCE_ITEMS = 200
DIFFERENCE_DEPTH = 40
DIFFERENCE_TEXT = 400
DIFFERENCE_BYTES = 2 * MIB
"""Lines of two results side by side; items of a list, or lines of a text, that are aligned and not only counted off;
how deep; how much of one text; and how large a result may be to be compared by line at all."""
DIFFERENCE_CONTEXT = 1
"""Equal lines that stay beside a difference."""

# ------------------------------------------------------------------------------------------------------ recordings

RECORDING_LINE = 64 * MIB
"""One line of a recording; the largest message takes less, however its characters are escaped."""
RECORDING_TICK_SECONDS, RECORDING_TURNS = 0.4, 4
"""How far behind the session a recording is: this is what a crash of Parley costs. In how many turns recordings write:
those of one turn write at the same moment, and together."""
RECORDING_SLICE = 1_500
RECORDING_SLICE_BYTES = 2 * MIB
"""How much of a log is gathered for a recording before others get a turn, in things and in bytes."""
RECORDING_NOUNS = 40_000
"""Of how many nouns it is known what was last written: what has not changed is not written again."""
RECORDING_SYNC_SECONDS, RECORDING_END_SECONDS = 5.0, 10.0
"""How often the disk is told to keep what it was given; how long the end of a recording may take."""
RECORDING_ANSWER_SECONDS = 60.0
"""How long the process that masks may take for one portion."""
RECORDING_KEEP_SECONDS = 4.0
"""How long all recordings wait for a disk or a store to take their lines; then it is left behind."""
RECORDINGS = 10_000
RECORDING_TITLE, RECORDING_NOTES, RECORDING_TAGS, RECORDING_TAG = 200, 10_000, 20, 40
RECORDING_WAITING = 4 * 1024 * 1024
"""Bytes of one recording that wait in memory for a store that does not answer; beyond that its log waits."""
STORE_RETRY_SECONDS = 1.0
"""How long a store that did not answer is left alone by recordings."""
SCRIBE_BATCH = 4 * MIB
"""What several recordings have for the process that masks goes there together, up to about so much."""
RECORDING_CHUNK = 256 * KIB
"""One chunk of a recording that is kept in the database; and of one that is sent."""
MASKS, MASKS_WANTED = 500, 50
"""Texts that are masked wherever they stand in one recording; names and pointers that a person may add."""
MASK_SHORTEST, MASK_WORD = 6, 12
"""A shorter text stands everywhere by chance; a shorter word is masked only if it was typed as a password."""
MASK_CACHED, MASK_REMEMBERED = 400, 4_096
"""Texts up to this length are looked at once; how many of them are remembered."""
MASK_PLACES = 500
MASK_POINTER = 300
MASK_NAME = 100
"""What a recording tells of what was masked in it."""

# -------------------------------------------------------------------------------------------------------- timeline

TIMELINE_ROWS = 1_000
"""Calls, each with its asks, that a page draws; scripts get all of them."""
TIMELINE_POLLS = 200
"""Polls of a task that are drawn, the newest."""
TIMELINE_COLUMNS = 400
"""Into how many parts the strip of the whole session is cut."""

# ---------------------------------------------------------------------------------------------- reading recordings

LARGEST_SEQ = 10**15
"""A larger number is no place in a log: an address would not take it."""
RECORDING_WAIT_SECONDS, RECORDING_PORTION_SECONDS = 0.3, 0.25
RECORDING_REST_SECONDS, RECORDING_IDLE_SECONDS = 0.05, 300.0
"""Until a page shows what is read, and a tab hears how far it is; the pause for others; until nobody looks."""
INDEX_BYTES = 2 * 1024 * MIB
"""What the indexes of all recordings together take of the disk; what nobody has opened for longest is let go of."""
RECORDINGS_OPEN, RECORDINGS_SEARCH_SECONDS, RECORDING_MATCHES = 20, 10.0, 5
"""How many are open at once, how long all of them are searched, and how many places of each are shown."""
MOMENT_MESSAGES, MOMENT_LOOKS = 1_000, 20_000  # messages of a moment, and how many are looked at for them
STATE_BYTES, SEARCHED_BYTES = 16 * MIB, 4 * MIB  # states of one kind that are held; messages read at once to search
RECORDED_CONNECTIONS, RECORDED_ASKS, RECORDED_ROWS = 200, 1_000, 2_000
"""Connections and asks of a recording that pages show, the newest; findings and HTTP requests kept for a next look."""

# ---------------------------------------------------------------------------------------------- schemas and forms

BODY_QUOTED = 20_000
"""Of a refusal's body that is looked through for what may not be shown, before its beginning is quoted."""
TABLE_COLUMNS = 200
"""Keys in all that the objects of a list may have to be shown as a table."""
TABLE_KEY = 200
"""A longer key makes no column: a page says each exactly, to ask for the order of it."""
TYPED_LINE = 8_192
"""A longer command line was not typed by a person, and is not read as one of a shell."""
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
TARGET_MARKS = 1000
"""Parts of a command line or an address that somebody marked as secret."""
PROPOSALS = 50
"""Commands that wait for the yes of one person."""
IDLED = 5
IDLED_SECONDS = 12 * 3600.0
"""Sessions that were closed because nobody needed them, of which their owner is told, and for how long."""
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
GIVE_BACK_REST = 20
"""After everything was looked through for garbage, so many times as long nobody does that again."""
CONSENTS = 1_000
"""Commands that a person has agreed to start; those that were started least recently are asked about again."""
SIGNED_OUT_SECONDS = 2.0
"""Until an open page notices that another Parley has signed its browser out."""
REMEMBERED_BYTES = 2 * MIB
"""Of the file with the digests of logins and consents; a larger one is none of ours."""
REAP_SECONDS = 5.0
WEIGHED_THINGS = 1_000_000
"""Texts, lists and objects of a closed session that are looked at to say how much it holds; more is too much."""
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
COMPARED_WATCHED = 20
"""Calls of other sessions that a session listens to, for pages that compare."""
REPEATED_CALLS = 50
"""Calls of a session that are answered as another one was."""
COMPARED_ARGUMENTS = 40
COMPARED_CALLS = 30
"""Arguments that are shown of each call, and calls that a picker offers."""
COMPARED_SECONDS = 0.25
"""How often a page hears of the other session at most: its events are not ours."""
ASKS_NOTED = 500
"""Asks that a call or a task remembers to have caused."""
ROUND_PAUSE_SECONDS = 0.1
ROUND_PAUSE_AT_MOST = 1.0
"""Between rounds that ask nothing: a server that only wants to be called again must not make us spin."""

REQUESTS_PER_TARGET = 200
REQUESTS = 5_000
REQUEST_NAME = 200
REQUEST_BYTES = 256 * KIB
"""Requests that are saved, of one server and in all; the characters of a name, the bytes of the parameters."""
REQUEST_MISSING = 100
"""Places in the parameters of one that are named because a secret was left out there."""
ASK_MEDIA = 4 * MIB
"""The largest picture or sound that the card of an ask shows, as base64: it is looked at whenever that is drawn."""
REQUESTS_OUTLIVE_SECONDS = 60.0
"""How long they are kept when their server was forgotten, which may be taken back."""

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
CHALLENGE_CHARACTERS = 8 * KIB
CHALLENGES = 8
CHALLENGE_PARAMETERS = 20
"""How much of what a server says in `WWW-Authenticate` is read: characters in all, challenges, parameters of each."""
OAUTH_DOCUMENT = 256 * KIB
OAUTH_SHOWN = 16 * KIB
OAUTH_LEARNED = 200
OAUTH_SECONDS = 15.0
"""What an authorization server answers: how much of it is read, how much is shown, how many secrets in it are looked
for elsewhere, and how long it may take."""
OAUTH_ATTEMPTS = 3
"""How often in a row a server may refuse what one signed in for (R5-60)."""
OAUTH_TOKEN = 32 * KIB
OAUTH_SCOPES = 200
OAUTH_NAME = 2 * KIB
"""Characters of a token; scopes that are asked for; characters of an issuer, a client id or a scope."""
OAUTH_WAIT_SECONDS = 600.0
"""How long the answer of a person's browser is waited for (S19)."""
OAUTH_EARLY_SECONDS = 30.0
"""So long before it expires a token is renewed."""
GRANTS = 500
"""Sign-ins that are kept; those that were used least recently are forgotten first."""
CALLBACK_URL = 16 * KIB
"""Characters of the address that an authorization server sends a browser back to."""
SIGN_IN_BODY = 16 * KIB
SIGN_IN_CLAIM = 2 * KIB
"""Characters of a body, and of one claim of a token, that the page of a sign-in draws."""
TARGET_CA = 256 * KIB
"""Certificates that a target may trust, as text."""
REFUSAL_BYTES = 64 * KIB
"""How much of an answer that is no message is read."""

LATEST_RESULT_BYTES = 16 * KIB
"""Up to here the last result of a session is kept as it was read, for whoever looks at it at once."""

PARTS_PER_PATCH = 60
"""Cards or rows of calls that one message to a tab carries at most; more than that makes it a snapshot."""
DRAWN_PARTS = 400
DRAWN_CHARACTERS = 4 * MIB
"""What is kept of parts that were drawn for one tab, for the other tabs of the session."""
FOLD_RUN = 6
"""So many rows of the log that say the same are one line; `static/js/decide.js` has the same number."""
FOLD_LOOKS = 4_000
"""Messages that are looked at for one page of the log, however much of it is folded."""
FOLD_ROWS = 500
"""Rows of one fold that are shown when it is opened; of more the newest."""

QUICK_SECONDS = 0.3
"""How long a form waits to see whether its connection fails at once."""
UNDO_SECONDS = 30.0
"""How long what was forgotten can be brought back."""

# --------------------------------------------------------------------------------------------------- answer rules

RULES = 100
"""Of one session."""
RULES_SAVED = 5_000
"""Kept with servers, in all."""
RULE_WORD = 200
RULE_FIELDS = 20
RULE_TEXT = 64 * KIB
RULE_BYTES = 256 * KIB
"""Of one rule as JSON."""
RULE_DELAY_MS = 10 * 60 * 1000
RULE_MATCHED = 100_000
"""Characters of a text that a rule is held against."""
RULE_MODEL_PER_MINUTE = 20
"""Answers of a model that a rule sends within a minute when it does not say how many: each costs somebody."""
CLAIM_SECONDS = 60.0
"""So long a person who has touched an ask has it alone; each touch begins anew."""
CLAIM_LOOK_SECONDS = 3_600.0
"""No longer than this between two looks at a claim that has no end."""
SPOKEN_FOR = 10
"""So many times the open asks may stand open when rules have promised to answer them."""

# --------------------------------------------------------------------------------------------------------- models

MODELS = 50
"""That one session may add."""
MODEL_URL = 2_000
MODEL_NAME = 200
MODEL_SECONDS = 120.0
"""Without a byte from a provider for so long, it counts as gone."""
MODELS_AT_WORK = 8
"""Drafts that are written at a time in one session."""
MODEL_NOTES = 20
TOOL_ROUNDS = 5
"""Rounds of tool use in a row, after which a person is warned and no rule goes on (R3-21)."""
CHANGES = 100
"""Places of a request, or of a draft, that are named as changed."""
MODEL_KEY_PARTS = 16
"""Of a key that has so many characters its first and its last ones are masked too, where a provider quotes them."""
MODEL_RETRY = 24 * 3600.0
"""Seconds that a provider may ask to wait; what it says beyond that is not told."""
MODEL_WIRE_BYTES = 64 * MIB
"""Of one answer of a provider, with all that stands around each of its words."""
RATE_KEYS = 10_000
"""People and addresses whose acts are counted; the one who was heard of least recently is forgotten first."""
RATE_UNTOLD = 100_000
"""Acts that other replicas do not know of yet, while the store does not answer."""
