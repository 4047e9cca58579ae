"""Who may answer what a server asks, each in a small module that knows neither page nor wire."""

from app.sessions.answerers.base import Answerer
from app.sessions.answerers.limit import Limit
from app.sessions.answerers.person import Person
from app.sessions.answerers.road import Road
from app.sessions.answerers.roots import RootsList

__all__ = ["Answerer", "Limit", "Person", "Road", "RootsList"]
