"""Who may answer what a server asks, each in a small module that knows neither page nor wire."""

from app.sessions.answerers.audience import Audience
from app.sessions.answerers.base import Answerer
from app.sessions.answerers.limit import Limit
from app.sessions.answerers.person import Person
from app.sessions.answerers.repeats import Repeats
from app.sessions.answerers.road import Road
from app.sessions.answerers.roots import RootsList
from app.sessions.answerers.rules import Rules

__all__ = ["Answerer", "Audience", "Limit", "Person", "Repeats", "Road", "RootsList", "Rules"]
