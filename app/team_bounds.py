"""Sizes and waits of a team that nobody can set, as `bounds` has those of everybody. Knows nothing else."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

# ------------------------------------------------------------------------------------------------ children of a team

CHILD_MEMORY = 512 * MIB
CHILD_PROCESSES = 64
CHILD_OPEN_FILES = 256
CHILD_FILE = 64 * MIB
CHILD_CPU_SECONDS = 300
CHILD_SCRATCH = 64 * MIB
"""What one child gets when its entry in the catalogue does not say: memory and CPU time of each process, processes and
threads together, open files, the largest file, and all that it keeps in its HOME and in /tmp."""
CHILD_USERS = 1_000
"""Of a range of users that children run as."""
WALL_SECONDS = 5.0
"""In which a wall is tried out at the start."""

# ------------------------------------------------------------------------------------------------------- catalogue

ENTRY_ID = 64
ENTRY_NAME = 80
ENTRY_DESCRIPTION = 500
ENTRY_PATH = 4_096
ENTRY_VARIABLES = 50
VARIABLE_NAME = 100
VARIABLE_VALUES = 100
VARIABLE_VALUE = 32 * KIB
"""Of one value, in bytes; a system takes four times as much."""
ENTRIES = 500
"""Of the catalogue that admins keep on the page."""

SEALED_PER_PERSON = 200
"""Values for servers of the catalogue that are kept, encrypted."""

# ---------------------------------------------------------------------------------------------------------- people

PEOPLE = 5_000
PERSON_NAME = 80
INVITATIONS = 500
LOGINS_PER_PERSON = 20
LOGIN_AGENT = 200
TOKENS_PER_PERSON = 50
TOKEN_DAYS = 366
"""A token without an end would be one that nobody remembers."""
ROTATE_SECONDS = 3_600.0
"""After which the secret of a login is replaced by another one, at its next use."""
ROTATION_GRACE_SECONDS = 60.0
"""In which the old one still counts: requests were on their way."""
SEEN_SECONDS = 60.0
"""When somebody was seen is not written more often."""
OIDC_BEGUN_SECONDS = 600
"""In which a sign-in by another service must come back."""
OIDC_SECONDS = 3_600.0
OIDC_KEYS_SECONDS = 60.0
"""How long what the service says of itself counts; and how soon its keys are asked for again over an unknown one."""
OIDC_ASKED_SECONDS = 15.0
OIDC_ANSWER = 1 * MIB
OIDC_LEEWAY = 60
"""How long one answer of it may take, how large it may be, and by how many seconds its clock may be wrong."""
TOKENS_REVOKED = 1_000
"""Of which a script that still sends one is told that it was revoked."""
SLOWED_SECONDS = 1.0
"""How long somebody waits for the answer that something is too much."""
REFUSALS_PER_MINUTE = 30
"""Of one person, or from one address, that are written down."""
METRICS_HEAD = 8 * KIB
METRICS_SECONDS = 5.0
METRICS_AT_ONCE = 10
"""Whoever asks for figures: how much they may say, how long they may take, and how many at the same time."""
HERE_SECONDS = 120.0
PEOPLE_SHOWN = 200
"""Of the list of people: since when somebody is no longer there, and how many it shows at once."""
AUDIT_DAYS = 90
AUDIT_ROWS = 1_000_000
AUDIT_TEXT = 300
AUDIT_WAITING = 10_000
"""Entries that wait for a file that cannot be written; then they are counted."""
AUDIT_AT_ONCE = 500
AUDIT_PAGE = 100
AUDIT_WORDS = 10
RECENT_DAYS, RECENT_SERVERS = 30, 20
"""Servers that somebody used lately."""

# ------------------------------------------------------------------------------------------------- several machines

RENEW_SECONDS = 5.0
"""How often a replica says that it lives."""
LEASE_SECONDS = 15.0
"""How long one counts as living that has not said so."""
TICK_SECONDS = 1.0
"""How often a replica writes down what its sessions are, and looks what others changed."""
COUNTS_SECONDS = 5.0
"""How often counts in the row of a session follow, when nothing else of it changed."""
HELD_SESSIONS = 10_000
LOST_SECONDS = 24 * 3600.0
"""How long a lost session is listed; its recording is kept for as long as recordings are."""
USED_SLOT = 5
"""Seconds that are counted together where a limit holds for all replicas: something counts up to so much longer."""
USED_ROWS = 20_000
"""Rows that are heard of others in a second, of those who do most."""
USED_TOLD = 500
"""Rows of each kind that are told others in a second: those of whoever does most, however many do a little."""
UNFINISHED_BYTES = 256 * 1024
"""What is kept of the calls of one session, so that they can go on when its replica dies; larger ones cannot."""
LOST_ROWS = 30
"""Messages and asks of a lost session that its page shows; the recording has all of them."""

# ---------------------------------------------------------------------------------------------------------- together

SHARES = 20_000
SHARES_PER_THING = 100
SHARE_HOURS = 24 * 30
"""The longest that a link may last."""
SHARES_KEPT_SECONDS = 86_400.0
"""For which a link that is over is still listed."""
SESSION_SHARES_SECONDS = 30 * 86_400.0
"""After which what was shared of a session is forgotten: no session lives that long."""
GONE_SECONDS = 4.0
"""Somebody who opens another page is away for a moment, and counts as here."""
SHARES_LOOK_SECONDS = 1.0
"""How often it is looked whose time is over."""
FOLLOWED_PATH = 2_000
