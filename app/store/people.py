"""The people of a team and what lets them in: invitations, logins of browsers, tokens of scripts.

Memory answers who somebody is, for every request; the file is written first, and what could not be written did not
happen. An invitation may come from another process (`parley invite`), so it is looked for in the file. Of all secrets
the file has digests only. Imported by team mode alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

from app import team_bounds as bounds
from app.core.catalogue import Role
from app.core.errors import Gone, NotAllowed, ParleyError
from app.core.people import (
    TOKEN_PREFIX,
    Door,
    Invitation,
    Login,
    Person,
    Scope,
    Token,
    check_change,
    check_invited,
    digest,
    new_secret,
    plain_name,
    token_seconds,
)
from app.store.people_kept import Kept, NotSaved
from app.store.people_rows import invitation_of, invitations_of, people_of, row_of
from app.store.shared import touched

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_T = TypeVar("_T")


__all__ = ["NotInvited", "NotSaved", "People"]


class NotInvited(ParleyError):
    """That code lets nobody in. Says why."""


class People(Kept):
    """Everybody of this installation."""

    # ---- who there is

    def all(self) -> list[Person]:
        """Everybody, by name."""
        return sorted(self._people.values(), key=lambda one: (one.name.casefold(), one.made))

    def find(self, key: str) -> Person | None:
        return self._people.get(key)

    @property
    def has_admin(self) -> bool:
        return any(one.role == "admin" and one.off is None for one in self._people.values())

    # ---- invitations

    async def invite(self, name: str, role: Role, by: str, seconds: float) -> tuple[str, Invitation]:
        """A new way in: the code, which is shown once, and what is kept of it. Raises Invalid, Conflict, NotAllowed."""
        name, now = plain_name(name), self._wall()
        check_invited(name, role, self._people.values())
        if len(self._people) >= bounds.PEOPLE:
            raise NotAllowed(f"There are {bounds.PEOPLE} people, which is the limit.")
        code = new_secret()
        made = Invitation(digest(code), name, role, now, now + seconds, by)

        async def write(connection: AsyncConnection) -> int:
            from sqlalchemy import delete, func, select

            from app.store.team_tables import invitations

            await connection.execute(delete(invitations).where(invitations.c.expires < now - 86_400))
            many = (await connection.execute(select(func.count()).select_from(invitations))).scalar_one()
            if many < bounds.INVITATIONS:
                await connection.execute(invitations.insert().values(row_of(made)))
            return int(many)

        if await self._done(write) >= bounds.INVITATIONS:
            raise NotAllowed(f"{bounds.INVITATIONS} invitations are open, which is the limit. Revoke some first.")
        return code, made

    async def invitations(self) -> list[Invitation]:
        """Those that still let somebody in, the newest first."""
        found = await self._database.look(invitations_of)
        now = self._wall()
        return [one for one in sorted(found or (), key=lambda one: -one.made) if not one.closed(now)]

    async def revoke_invitation(self, key: str) -> None:
        """Let nobody in by it any more; `key` is its digest."""

        async def write(connection: AsyncConnection) -> int:
            from app.store.team_tables import invitations

            done = await connection.execute(
                invitations.update().where(invitations.c.digest == key, invitations.c.used.is_(None)).values(revoked=1)
            )
            return int(done.rowcount)

        if not await self._done(write):
            raise Gone("That invitation was used, or is gone.")

    async def enter(self, code: str, agent: str) -> tuple[Person, Login, str]:
        """Somebody comes with an invitation: who they are from now on, their login and its secret. Raises NotInvited.

        Of two who come with the same code at the same moment one is let in: whoever marks it in the file."""
        key, now = digest(code), self._wall()

        async def write(connection: AsyncConnection) -> Invitation | str:
            from sqlalchemy import select

            from app.store.team_tables import invitations

            # Whoever comes at the same moment, perhaps to another replica, waits here.
            query = select(invitations).where(invitations.c.digest == key).with_for_update()
            row = (await connection.execute(query)).mappings().first()
            if row is None:
                return "That invitation is not known here. Ask an admin for another one."
            found = invitation_of(row)
            if why := found.closed(now):
                return why
            known = _named(found.name, await people_of(connection))
            if known is not None and known.off is not None:
                return f"{known.name} is switched off. An admin can switch them on again."
            await connection.execute(invitations.update().where(invitations.c.digest == key).values(used=now))
            return found

        found = await self._done(write)
        if isinstance(found, str):
            raise NotInvited(found)

        def decide(people: Mapping[str, Person]) -> Person:  # two with two invitations of one name are one person
            known = _named(found.name, people.values())
            if known is not None and known.door == "invitation":
                return known
            return Person(_id("p"), found.name, found.role, "invitation", "", now, now)

        person = await self._decide(decide)
        return person, *await self.sign_in(person, agent)

    # ---- the other doors

    async def known_as(self, door: Door, subject: str, name: str, role: Role) -> Person:
        """Whoever another door vouches for, made when they come for the first time; their role is ours to change."""

        def known(people: Mapping[str, Person]) -> Person | None:
            return next((one for one in people.values() if (one.door, one.subject) == (door, subject)), None)

        def decide(people: Mapping[str, Person]) -> Person:
            if (found := known(people)) is not None:
                return found
            if len(people) >= bounds.PEOPLE:
                raise NotAllowed(f"There are {bounds.PEOPLE} people, which is the limit.")
            now, given = self._wall(), plain_name(name)
            for number in range(2, bounds.PEOPLE):  # nobody poses as somebody else by having their name
                if _named(given, people.values()) is None:
                    break
                given = f"{plain_name(name)[: bounds.PERSON_NAME - 8]} ({number})"
            return Person(_id("p"), given, role, door, subject, now, now)

        return known(self._people) or await self._decide(decide)

    async def decided(self, person: Person, role: Role) -> Person:
        """Somebody has another role now, which their door decides."""
        return await self._decide(lambda people: replace(_known(people, person.id), role=role))

    # ---- logins of browsers

    async def sign_in(self, person: Person, agent: str) -> tuple[Login, str]:
        """A new login, with a secret that nobody had before (S14). The oldest of very many is ended for it."""
        now, secret = self._wall(), new_secret()
        made = Login(_id("l"), person.id, digest(secret), now, now, now, now + self._login_seconds, _agent(agent))
        for old in self.logins(person.id)[bounds.LOGINS_PER_PERSON - 1 :]:
            await self.sign_out(old.id)
        await self._write("logins", made)
        self._logins[made.id] = made
        self._by_digest[made.digest] = made.id
        return made, secret

    def by_login(self, secret: str) -> tuple[Person, Login] | None:
        """Whose browser has this secret. None for nobody, for one that has expired, and for who is switched off."""
        key = digest(secret)
        login = self._logins.get(self._by_digest.get(key, ""))
        if login is None or not login.opens(key, self._wall(), self._idle_seconds):
            return None
        person = self._people.get(login.person)
        return None if person is None or person.off is not None else (person, login)

    def ended(self, secret: str) -> Literal["", "expired", "idle"]:
        """Why a login that was one lets nobody in any more; empty for any other."""
        login = self._logins.get(self._by_digest.get(digest(secret), ""))
        if login is None:
            return ""
        return "expired" if self._wall() >= login.expires else "idle"

    async def sweep(self) -> None:
        """Forget logins and tokens that ended a while ago."""
        since = self._wall() - 86_400
        logins = [one for one in self._logins.values() if one.expires < since]
        tokens = [one for one in self._tokens.values() if one.expires < since]
        for login in logins:
            self._forget(self._logins.pop(login.id))
        for token in tokens:
            self._forget(self._tokens.pop(token.id))
        await self._drop("logins", [one.id for one in logins])
        await self._drop("tokens", [one.id for one in tokens])

    def use(self, key: str) -> tuple[str | None, bool]:
        """A browser was used: a new secret for it when the old one has served long enough, and whether the file has to
        be told (`keep`)."""
        now, login = self._wall(), self._logins.get(key)
        if login is None:
            return None, False
        if now - login.rotated < bounds.ROTATE_SECONDS or self._database.trouble:
            if now - login.seen < bounds.SEEN_SECONDS:
                return None, False
            self._logins[key] = replace(login, seen=now)
            return None, True
        secret = new_secret()
        new = self._logins[key] = replace(login, digest=digest(secret), before=login.digest, rotated=now, seen=now)
        self._by_digest.pop(login.before, None)
        self._by_digest[new.digest] = self._by_digest[login.digest] = key
        return secret, True

    async def keep(self, key: str) -> bool:
        """Bring a login or a token to the file as it is now, and when its person was seen. Whether the secret of a
        login is the newest: of two replicas that replace one at the same moment, one does."""
        login = self._logins.get(key)
        if (token := self._tokens.get(key)) is not None:
            await self._seen("tokens", key, token.seen)
        if login is None:
            return False

        async def write(connection: AsyncConnection) -> tuple[str | None]:
            from sqlalchemy import select

            from app.store.team_tables import logins

            mine = logins.c.id == key
            await connection.execute(logins.update().where(mine).values(seen=login.seen))
            new = {"digest": login.digest, "before": login.before, "rotated": login.rotated}
            if (
                await connection.execute(logins.update().where(mine, logins.c.digest == login.before).values(new))
            ).rowcount:
                await touched(connection, "people")
            return ((await connection.execute(select(logins.c.digest).where(mine))).scalar(),)

        (there,) = await self._done(write)
        if (person := self._people.get(login.person)) is not None:
            await self.was_here(person)
        return there == login.digest

    def lets_in(self, person: str, key: str) -> bool:
        """Whether a login or a token still lets its person in."""
        known, found = self._people.get(person), self._logins.get(key) or self._tokens.get(key)
        is_there = found is not None and found.person == person and found.expires > self._wall()
        return is_there and known is not None and known.off is None

    def logins(self, person: str) -> list[Login]:
        """The browsers of somebody, the last used first."""
        now = self._wall()
        mine = (one for one in self._logins.values() if one.person == person and one.expires > now)
        return sorted(mine, key=lambda one: -one.seen)

    async def sign_out(self, key: str) -> None:
        """End a login: from this moment its secret opens nothing, also when the file cannot be written."""
        self._forget(self._logins.pop(key, None))
        self._ended.add(key)
        await self._drop("logins", [key])

    async def sign_out_everywhere(self, person: str) -> list[str]:
        """End every login of somebody; the ids of those that ended."""
        ended = [one.id for one in self._logins.values() if one.person == person]
        for key in ended:
            self._forget(self._logins.pop(key, None))
        self._ended.update(ended)
        await self._drop("logins", ended)
        return ended

    # ---- tokens of scripts

    async def make_token(self, person: str, name: str, scope: Scope, days: float) -> tuple[str, Token]:
        """A token: its text, which is shown once, and what is kept of it. Raises Invalid, NotAllowed."""
        name, seconds, now = plain_name(name), token_seconds(days), self._wall()
        if len(self.tokens(person)) >= bounds.TOKENS_PER_PERSON:
            raise NotAllowed(f"You have {bounds.TOKENS_PER_PERSON} tokens, which is the limit. Revoke one first.")
        text = TOKEN_PREFIX + new_secret()
        made = Token(_id("k"), person, name, scope, digest(text), now, now + seconds)
        await self._write("tokens", made)
        self._tokens[made.id] = made
        self._by_digest[made.digest] = made.id
        return text, made

    def tokens(self, person: str) -> list[Token]:
        """The tokens of somebody that still work, the newest first."""
        now = self._wall()
        mine = (one for one in self._tokens.values() if one.person == person and one.expires > now)
        return sorted(mine, key=lambda one: -one.made)

    def by_token(self, text: str) -> tuple[Person, Token] | None:
        """Whose script has this token; None as with `by_login`."""
        token = self._tokens.get(self._by_digest.get(digest(text), ""))
        if token is None or self._wall() >= token.expires:
            return None
        person = self._people.get(token.person)
        return None if person is None or person.off is not None else (person, token)

    def use_token(self, key: str) -> bool:
        """A token was used: whether the file has to be told (`keep`), once in a while."""
        now, known = self._wall(), self._tokens.get(key)
        if known is None or now - known.seen < bounds.SEEN_SECONDS:
            return False
        self._tokens[key] = replace(known, seen=now)
        return True

    def refusal_of(self, text: str) -> str:
        """Why a token that was one lets nobody in any more; empty for any other."""
        if digest(text) in self._revoked:
            return "That token was revoked. Make another one on the page Me."
        token = self._tokens.get(self._by_digest.get(digest(text), ""))
        return "" if token is None else "That token is over. Make another one on the page Me."

    async def revoke_token(self, person: str, key: str) -> Token:
        """End a token of somebody. Raises Gone for one that is not theirs."""
        found = self._tokens.get(key)
        if found is None or found.person != person:
            raise Gone("That token is revoked, or has expired.")
        self._forget(self._tokens.pop(key))
        self._revoked[found.digest] = None
        while len(self._revoked) > bounds.TOKENS_REVOKED:
            self._revoked.popitem(last=False)
        await self._drop("tokens", [key])
        return found

    # ---- what an admin does

    async def change_role(self, by: Person | None, key: str, role: Role) -> Person:
        """Give somebody another role. Raises Gone, NotAllowed."""

        def decide(people: Mapping[str, Person]) -> Person:
            whom = _known(people, key)
            check_change(by, whom, people.values(), role=role, off=False)
            return replace(whom, role=role)

        return await self._decide(decide)

    async def switch_off(self, by: Person | None, key: str) -> Person:
        """Let somebody in no more: their logins end here, their streams and sessions by whoever called this. Tokens
        stay and work again when they are switched on. Raises Gone, NotAllowed."""

        def decide(people: Mapping[str, Person]) -> Person:
            whom = _known(people, key)
            check_change(by, whom, people.values(), role=None, off=True)
            return replace(whom, off=self._wall())

        person = await self._decide(decide)
        await self.sign_out_everywhere(key)
        return person

    async def switch_on(self, key: str) -> Person:
        return await self._decide(lambda people: replace(_known(people, key), off=None))

    async def was_here(self, person: Person) -> None:
        """Somebody was seen; when, is written once in a while."""
        now, known = self._wall(), self._people.get(person.id)
        if known is not None and now - known.seen >= bounds.SEEN_SECONDS:
            self._people[known.id] = replace(known, seen=now)
            await self._seen("people", known.id, now)


def _known(people: Mapping[str, Person], key: str) -> Person:
    found = people.get(key)
    if found is None:
        raise Gone("There is nobody like that here any more.")
    return found


def _named(name: str, people: Iterable[Person]) -> Person | None:
    return next((one for one in people if one.name.casefold() == name.casefold()), None)


def _id(kind: str) -> str:
    return kind + secrets.token_urlsafe(9)


def _agent(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[: bounds.LOGIN_AGENT]
