"""Sizes and limits for people without an account: answer links, rooms, the public demo. Nobody can set them."""

from app.bounds import KIB

# --------------------------------------------------------------------------------------------------------- guests

LINKS = 500
"""Answer links of this process, those that are over among them."""
LINK_SECONDS = 24 * 3600.0
"""The longest that an answer link may work."""
LINK_USUAL_SECONDS = 600.0
LINK_NAME = 60
GUEST_TEXT = 2_000
"""Characters that a guest writes in place of a model."""
GUEST_BYTES = 64 * KIB
"""The body of what somebody without an account sends."""

# ----------------------------------------------------------------------------------------------------------- rooms

ROOM_PHONES = 2_000
"""Phones that one room knows; whoever comes then is told that it is full. Half of them may come from one address: a
hall is often behind one."""
ROOM_NEW_PER_SECOND = 300
"""Phones that a room gets to know within a second, a hall that looks at the code at one moment among them: one that
throws its cookie away again and again is new each time."""
ROOM_SENDS_PER_MINUTE = 20
"""What one phone may send."""
ROOM_ANSWER_BYTES = 16 * KIB
"""One answer of a phone, as JSON."""
ROOM_FIELDS = 12
ROOM_BARS = 12
"""Fields and values of a field that a stage shows."""
ROOM_TEXTS = 60
"""Written answers that a stage shows; the newest."""
ROOM_VOTED = 20
"""Written answers that a room votes on; the first."""
ROOM_PAST = 20
"""Questions that are over and of which a phone that comes late is told."""
ROOM_SECONDS = 3_600.0
ROOM_TELL_SECONDS = 0.15
"""No more often than this does a stage hear of answers that came."""
ROOM_WAIT_SECONDS = 25.0
"""How long a phone waits for the next question before it asks again: proxies end what is silent for longer."""
ROOM_CODE = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters and figures that nobody confuses across a room."""

# ------------------------------------------------------------------------------------------------------ public demo

VISIT_SECONDS = 30 * 60.0
VISIT_CALLS = 30
VISITS_KNOWN = 5_000
"""Visitors whose calls are counted."""
VISITS_PER_MINUTE = 120
"""Visits that begin, of everybody together; half of them from one address, and so of the places that there are."""
DEMO_START_SECONDS, DEMO_LOOK_SECONDS = 30.0, 5.0
"""For the demo server of all visitors to start; between two looks for visits that are over."""
TOUR_SECONDS = 10.0
"""The longest that one step of the tour waits for what it shows."""
