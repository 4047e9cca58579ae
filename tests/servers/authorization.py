"""A protected MCP server and the authorization servers in front of it, on loopback, built on Authlib.

    python authorization.py [--with JSON] [--tls CERT KEY]

Prints the port of the MCP server, which is at `/mcp` (protected.py). One of four issuers protects it, each on a port of
its own: `issuer`, `other`, `tls` (the first one behind a certificate that nobody vouches for) and `closed`, where
nobody listens. `GET /control` says where they are, what they saw, and every secret that was handed out; `POST /control`
changes settings while they run. `{"fault": NAME}` is a whole broken set-up, and null is honest again; `{"now": …}` acts
at once: `forget` (no token is good any more), `outdate` (every access token has expired), `anew` (nobody was here yet).
Settings:

    which        the issuer that the server names
    issuer_path  the path of the issuers, such as "/tenant1"
    challenge    the header of a 401, instead of the honest one; "" for none
    points       whether the challenge has `resource_metadata`
    resource_at  where its metadata is: "path", "root", "elsewhere" (known from the challenge alone), "nowhere"
    server_at    where an issuer's is: "oauth", "openid", "appended" (only with a path), "nowhere"
    resource, metadata, registration, token, callback     members of those documents that replace honest ones; null
                 takes one out
    listed       the scopes that the metadata of the resource lists; null for none
    offline      whether the issuer lists `offline_access`
    iss          whether it says who it is in the callback, and that it does
    refuse       {"register" or "token" or "refresh" or "revoke": [status, body]}: answered so; `{code}` in its texts is
                 what the request said there
    hangs        paths that are not answered while they stand here
    answers      {path: [status, content type, text]}: answered so, at any port
    redirects    {path: address}: a 307 to there
    clients      {id: {"client_secret", "redirect_uris", "token_endpoint_auth_method", "public_key"}}: registered before
    documents    {address: document}: client-id metadata documents, as if they had been fetched
    lives        how long an access token lives, in seconds; null: it does not say
    code_lives   how long a code lives
    jwt          whether an access token is a JWT
    refreshes    whether there are refresh tokens; each works once
    enough       whether a token with every scope is ever enough
    open         methods of MCP that need no token
    eras         revisions that the server speaks
"""

import argparse
import html
import json
import os
import secrets
import socket
import time

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # it serves loopback

import anyio
import uvicorn
from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import AuthorizationServer, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, JsonRequest, TokenMixin, grants
from authlib.oauth2.rfc6749.errors import InvalidGrantError
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7591.errors import InvalidRedirectURIError
from authlib.oauth2.rfc7636 import CodeChallenge
from joserfc import jwt
from joserfc.jwk import OctKey
from protected import Protected
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

READ, WRITE = "tide:read", "boat:write"
SCOPES = [READ, WRITE]
METHODS = ["none", "client_secret_basic", "client_secret_post"]
KEY = OctKey.generate_key(256)

HONEST = {
    "which": "issuer",
    "issuer_path": "",
    "challenge": None,
    "points": True,
    "resource_at": "path",
    "server_at": "oauth",
    "resource": {},
    "metadata": {},
    "registration": {},
    "token": {},
    "callback": {},
    "listed": SCOPES,
    "offline": False,
    "iss": True,
    "refuse": {},
    "hangs": [],
    "answers": {},
    "redirects": {},
    "clients": {},
    "documents": {},
    "lives": 3600,
    "code_lives": 60,
    "jwt": False,
    "refreshes": True,
    "enough": True,
    "open": [],
    "eras": ["2025-11-25", "2026-07-28"],
}
FAULTS = {
    "no metadata": {"points": False, "resource_at": "nowhere", "server_at": "nowhere"},
    "wrong resource": {"resource": {"resource": "https://boats.example/mcp"}},
    "wrong issuer": {"metadata": {"issuer": "https://login.example"}},
    "no PKCE": {"metadata": {"code_challenge_methods_supported": None}},
    "refused registration": {
        "refuse": {
            "register": [
                403,
                {"error": "access_denied", "error_description": "Only members register clients"},
            ]
        }
    },
    "expired code": {"code_lives": 0},
    "wrong redirect": {"registration": {"redirect_uris": ["http://localhost:1/callback"]}},
    "TLS failure": {"which": "tls"},
    "unreachable server": {"which": "closed"},
    "endless 403": {"enough": False},
}


class Client(dict, ClientMixin):
    """What was registered, as its metadata."""

    def get_client_id(self):
        return self["client_id"]

    def get_default_redirect_uri(self):
        return (self.get("redirect_uris") or [""])[0]

    def get_allowed_scope(self, scope):
        return " ".join(each for each in (scope or "").split() if each in [*SCOPES, "offline_access"])

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.get("redirect_uris", [])

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(self.get("client_secret") or "", client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return self.get("token_endpoint_auth_method", "client_secret_basic") == method

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in self.get("grant_types", ["authorization_code"])


class Code(AuthorizationCodeMixin):
    """One that waits to be redeemed, once."""

    def __init__(self, request):
        data = request.payload.data
        self.client_id, self.redirect_uri, self.scope = request.client["client_id"], data["redirect_uri"], request.scope
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")
        self.resource = data.get("resource")
        self.at = time.time()

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


class Token(TokenMixin):
    """A pair that was handed out."""

    def __init__(self, token, client, lives, resource):
        self.access, self.refresh = token["access_token"], token.get("refresh_token")
        self.client_id, self.scope, self.resource = client["client_id"], token.get("scope", ""), resource
        self.lives, self.at, self.revoked, self.spent = lives, time.time(), False, False

    @property
    def is_good(self):
        return not self.revoked and not self.is_expired()

    def check_client(self, client):
        return self.client_id == client["client_id"]

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return self.lives or 0

    def is_expired(self):
        return self.lives is not None and time.time() > self.at + self.lives

    def is_revoked(self):
        return self.revoked


class Asked(OAuth2Request):
    def __init__(self, request):
        super().__init__(request.method, str(request.url), headers=request.headers)
        self.payload = BasicOAuth2Payload({**request.query_params, **request.state.form})
        self._form = request.state.form

    @property
    def form(self):
        return self._form


class AskedInJson(JsonRequest):
    def __init__(self, request):
        super().__init__(request.method, str(request.url), request.headers)
        self.payload = type("Payload", (), {"data": request.state.json})()


class ByCode(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def generate_authorization_code(self):
        return self.server.secret("code")

    def save_authorization_code(self, code, request):
        self.server.codes[code] = Code(request)

    def query_authorization_code(self, code, client):
        found = self.server.codes.pop(code, None)
        if found is None or found.client_id != client["client_id"]:
            return None
        if time.time() > found.at + self.server.settings["code_lives"]:
            raise InvalidGrantError("The code has expired.")
        return found

    def validate_token_request(self):
        super().validate_token_request()
        self.server.same_resource(self.request, self.request.authorization_code.resource)

    def delete_authorization_code(self, authorization_code):
        pass

    def authenticate_user(self, authorization_code):
        return "ada"


class ByRefresh(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        found = next((each for each in self.server.tokens if each.refresh == refresh_token), None)
        return None if found is None or found.spent or found.revoked else found

    def authenticate_user(self, refresh_token):
        self.server.same_resource(self.request, refresh_token.resource)
        return "ada"

    def revoke_old_credential(self, refresh_token):
        refresh_token.spent = True


class ByItself(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = (*METHODS[1:], "private_key_jwt")


class Assertion(JWTBearerClientAssertion):
    CLIENT_AUTH_METHOD = "private_key_jwt"

    def __init__(self, server):
        super().__init__()
        self.server = server

    def get_audiences(self):
        return [self.server.url("/token"), self.server.name]

    def validate_jti(self, claims, jti):
        return True

    def resolve_client_public_key(self, client, headers=None):
        return client["public_key"]


class Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request):
        return True

    def get_server_metadata(self):
        return {}

    def generate_client_id(self, request):
        return f"client-{secrets.token_hex(4)}"

    def generate_client_secret(self, request):
        wants = request.payload.data.get("token_endpoint_auth_method", "client_secret_basic")
        return "" if wants == "none" else self.server.secret("secret")

    def save_client(self, client_info, client_metadata, request):
        if not client_metadata.get("redirect_uris"):
            raise InvalidRedirectURIError()
        changed = self.server.settings["registration"]
        client = Client({**client_metadata, **client_info, **changed})
        self.server.clients[client["client_id"]] = client
        return client

    def generate_client_registration_info(self, client, request):
        return {name: value for name, value in client.items() if value not in ("", None)}


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string, token_type_hint):
        return next((each for each in self.server.tokens if token_string in (each.access, each.refresh)), None)

    def revoke_token(self, token, request):
        token.revoked = True


class Issuer(AuthorizationServer):
    """One authorization server: its clients, its codes, its tokens."""

    def __init__(self, world, base):
        super().__init__()
        self.world, self.base = world, base
        self.clients, self.codes, self.tokens = {}, {}, []
        self.register_grant(ByCode, [CodeChallenge(required=True)])
        self.register_grant(ByRefresh)
        self.register_grant(ByItself)
        self.register_endpoint(Registration)
        self.register_endpoint(Revocation)
        self.register_client_auth_method("private_key_jwt", Assertion(self))
        self.register_token_generator(
            "default", BearerTokenGenerator(self.access_token, self.refresh_token, lambda *_: self.settings["lives"])
        )

    @property
    def settings(self):
        return self.world.settings

    @property
    def name(self):
        return self.base + self.settings["issuer_path"]

    def url(self, path):
        return self.base + self.settings["issuer_path"] + path

    def secret(self, kind):
        made = f"canary-{kind}-{secrets.token_hex(16)}"
        self.world.secrets.append(made)
        return made

    def access_token(self, client, grant_type, user, scope):
        if not self.settings["jwt"]:
            return self.secret("access")
        now = int(time.time())
        claims = {
            "iss": self.name,
            "sub": user or client["client_id"],
            "aud": self.world.resource,
            "scope": scope,
            "client_id": client["client_id"],
            "iat": now,
            "jti": secrets.token_hex(4),
        }
        if self.settings["lives"] is not None:
            claims["exp"] = now + self.settings["lives"]
        token = jwt.encode({"alg": "HS256", "typ": "at+jwt"}, claims, KEY)
        self.world.secrets += [token, token.rpartition(".")[2]]
        return token

    def refresh_token(self, client, grant_type, user, scope):
        return self.secret("refresh")

    def generate_token(self, grant_type, client, user=None, scope=None, expires_in=None, include_refresh_token=True):
        wanted = include_refresh_token and self.settings["refreshes"]
        return super().generate_token(grant_type, client, user, scope, expires_in, wanted)

    def query_client(self, client_id):
        settings = self.settings
        if client_id in settings["clients"]:
            return Client({"grant_types": list(GRANTS), **settings["clients"][client_id], "client_id": client_id})
        if client_id in settings["documents"]:
            document = settings["documents"][client_id]
            if document.get("client_id") == client_id:
                return Client({"token_endpoint_auth_method": "none", **document})
        return self.clients.get(client_id)

    def save_token(self, token, request):
        code = request.authorization_code or request.refresh_token
        resource = request.payload.data.get("resource") if code is None else code.resource
        self.tokens.append(Token(token, request.client, self.settings["lives"], resource))
        token.update(self.settings["token"])
        for name in [name for name, value in self.settings["token"].items() if value is None]:
            del token[name]

    def same_resource(self, request, resource):
        asked = request.payload.data.get("resource")
        if asked != resource or asked not in (self.world.resource, self.settings["resource"].get("resource")):
            raise _InvalidTarget()

    def validate_requested_scope(self, scope):
        pass

    def send_signal(self, name, *args, **kwargs):
        pass

    def create_oauth2_request(self, request):
        return request if isinstance(request, OAuth2Request) else Asked(request)

    def create_json_request(self, request):
        return AskedInJson(request)

    def handle_response(self, status, body, headers):
        shown = JSONResponse if isinstance(body, dict) else Response
        return shown(body, status, dict(headers))

    # ---- addresses

    def metadata(self):
        scopes = [*SCOPES, *(["offline_access"] if self.settings["offline"] else [])]
        honest = {
            "issuer": self.name,
            "authorization_endpoint": self.url("/authorize"),
            "token_endpoint": self.url("/token"),
            "registration_endpoint": self.url("/register"),
            "revocation_endpoint": self.url("/revoke"),
            "scopes_supported": scopes,
            "response_types_supported": ["code"],
            "grant_types_supported": list(GRANTS),
            "token_endpoint_auth_methods_supported": METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": self.settings["iss"],
            "client_id_metadata_document_supported": bool(self.settings["documents"]),
        }
        return _merged(honest, self.settings["metadata"])

    def answer(self, request):
        path = request.url.path
        issuer_path, at = self.settings["issuer_path"], self.settings["server_at"]
        places = {
            "oauth": f"/.well-known/oauth-authorization-server{issuer_path}",
            "openid": f"/.well-known/openid-configuration{issuer_path}",
            "appended": f"{issuer_path}/.well-known/openid-configuration",
        }
        if path == places.get(at):
            return JSONResponse(self.metadata())
        own = path.removeprefix(issuer_path)
        if own == "/authorize":
            return self.authorize(request)
        refused = {"/register": "register", "/revoke": "revoke", "/token": "token"}.get(own)
        if refused is None or request.method != "POST":
            return PlainTextResponse("Not found", 404)
        if own == "/token" and request.state.form.get("grant_type") == "refresh_token":
            refused = "refresh"
        if refused in self.settings["refuse"]:
            status, body = self.settings["refuse"][refused]
            text = json.dumps(body)
            for name, value in request.state.form.items():
                text = text.replace(f"{{{name}}}", json.dumps(value)[1:-1])
            return Response(text, status, media_type="application/json")
        if own == "/token":
            return self.create_token_response(request)
        return self.create_endpoint_response("client_registration" if own == "/register" else "revocation", request)

    def authorize(self, request):
        """The page on which a person allows or denies; what they press goes back to the client."""
        try:
            grant = self.get_consent_grant(request, "ada")
            self.same_resource(grant.request, grant.request.payload.data.get("resource"))
        except OAuth2Error as fault:
            back = getattr(fault, "redirect_uri", None)
            if back:
                return self.back(RedirectResponse(add_params_to_uri(back, dict(fault.get_body())), 303), request)
            return HTMLResponse(_page("This will not do", f"<p>{html.escape(str(fault))}</p>"), 400)
        if request.method == "GET":
            scopes = (grant.request.scope or "").split()
            asked = "".join(f"<li>{html.escape(each)}</li>" for each in scopes) or "<li>nothing in particular</li>"
            name = html.escape(str(grant.client.get("client_name") or grant.client["client_id"]))
            form = '<form method="post"><button name="say" value="allow">Allow</button>'
            form += '<button name="say" value="deny">Deny</button></form>'
            return HTMLResponse(_page("Harbour office", f"<p>{name} wants:</p><ul>{asked}</ul>{form}"))
        user = "ada" if request.state.form.get("say") == "allow" else None
        return self.back(self.create_authorization_response(grant.request, user, grant), request)

    def back(self, answer, request):
        """The redirect to the client, with what the settings add to it or take away."""
        where = answer.headers.get("location")
        if where is None:
            return answer
        honest = {"state": request.query_params.get("state"), "iss": self.name if self.settings["iss"] else None}
        path, _, query = where.partition("?")
        known = dict(each for each in Request({"type": "http", "query_string": query.encode()}).query_params.items())
        whole = _merged({**honest, **known}, self.settings["callback"])
        return RedirectResponse(add_params_to_uri(path, {k: v for k, v in whole.items() if v is not None}), 303)


GRANTS = ("authorization_code", "refresh_token", "client_credentials")


class _InvalidTarget(OAuth2Error):
    error = "invalid_target"
    description = "The resource is not one that this server issues tokens for."


class World:
    """Everything that runs here, and what it saw."""

    def __init__(self, settings, ports):
        self.settings, self.ports = settings, ports
        self.faults, self.saw, self.secrets = [], [], []
        self.own = f"http://127.0.0.1:{ports['server']}"
        self.resource = f"{self.own}/mcp"
        schemes = {"tls": "https"}
        self.issuers = {
            name: Issuer(self, f"{schemes.get(name, 'http')}://127.0.0.1:{ports[name]}")
            for name in ("issuer", "other", "tls", "closed")
            if name in ports
        }
        self.protected = Protected(self)

    @property
    def named(self):
        """The issuer that the server names."""
        return self.issuers[self.settings["which"]]

    def token(self, value):
        """The token behind a bearer's words, if it is good."""
        found = [each for each in self.named.tokens if secrets.compare_digest(each.access, value)]
        return found[0] if found and found[0].is_good else None

    def resource_metadata(self):
        honest = {
            "resource": self.resource,
            "authorization_servers": [self.named.name],
            "scopes_supported": self.settings["listed"],
            "bearer_methods_supported": ["header"],
        }
        return _merged({k: v for k, v in honest.items() if v is not None}, self.settings["resource"])

    async def answer(self, request):
        request.state.form, request.state.json = {}, None
        kind, body = request.headers.get("content-type", ""), await request.body()
        if kind.startswith("application/x-www-form-urlencoded"):
            request.state.form = dict(await request.form())
        elif kind.startswith("application/json"):
            request.state.json = json.loads(body)
        port, path = request.scope["server"][1], request.url.path
        at = next(name for name, number in self.ports.items() if number == port)
        if path == "/control":
            return self.control(request)
        self.saw.append(
            {
                "at": at,
                "method": request.method,
                "path": path,
                "query": dict(request.query_params),
                "form": request.state.form,
                "json": request.state.json,
                "headers": dict(request.headers),
            }
        )
        while path in self.settings["hangs"]:  # noqa: ASYNC110 (no event: it is changed by a request)
            await anyio.sleep(0.02)
        if path in self.settings["answers"]:
            status, media, text = self.settings["answers"][path]
            return Response(text, status, media_type=media)
        if path in self.settings["redirects"]:
            return RedirectResponse(self.settings["redirects"][path], 307)
        if at == "server":
            return self.at_server(request, path)
        return self.issuers[at].answer(request)

    def at_server(self, request, path):
        places = {
            "path": "/.well-known/oauth-protected-resource/mcp",
            "root": "/.well-known/oauth-protected-resource",
            "elsewhere": "/about/this-server.json",
        }
        if path == places.get(self.settings["resource_at"]):
            return JSONResponse(self.resource_metadata())
        if path == "/mcp":
            return self.protected.answer(request, self.own + places.get(self.settings["resource_at"], places["path"]))
        return PlainTextResponse("Not found", 404)

    def control(self, request):
        """How a test tells it what to do, and asks what it saw."""
        said = request.state.json or {}
        fault = said.pop("fault", ...)
        if fault is not ...:
            self.settings = {**HONEST, **(FAULTS[fault] if fault else {})}
        now = said.pop("now", None)
        if now == "anew":
            self.saw.clear()
            self.secrets.clear()
        for issuer in self.issuers.values() if now else ():
            if now == "anew":
                for kept in (issuer.clients, issuer.codes, issuer.tokens):
                    kept.clear()
            for token in issuer.tokens:
                if now == "forget":
                    token.revoked = True
                else:
                    token.at -= (token.lives or 0) + 1
        unknown = said.keys() - HONEST.keys()
        if unknown:
            return JSONResponse({"unknown": sorted(unknown)}, 422)
        self.settings.update(said)
        tokens = [each for issuer in self.issuers.values() for each in issuer.tokens]
        return JSONResponse(
            {
                "resource": self.resource,
                "issuers": {name: issuer.name for name, issuer in self.issuers.items()},
                "settings": self.settings,
                "saw": self.saw,
                "secrets": self.secrets,
                "tokens": [{"scope": each.scope, "good": each.is_good, "spent": each.spent} for each in tokens],
            }
        )


def _merged(honest, changed):
    return {name: value for name, value in {**honest, **changed}.items() if value is not None}


def _page(title, inside):
    return (
        f'<!doctype html><html lang="en"><title>{title}</title><link rel="icon" href="data:,"><h1>{title}</h1>{inside}'
    )


def _listening():
    return socket.create_server(("127.0.0.1", 0))


async def main(settings, tls):
    sockets = {"server": _listening(), "issuer": _listening(), "other": _listening()}
    if tls:
        sockets["tls"] = _listening()
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))  # taken, so that nobody else gets it, and never listened on
    ports = {name: each.getsockname()[1] for name, each in {**sockets, "closed": deaf}.items()}
    world = World(settings, ports)

    everything = ["GET", "POST", "DELETE", "PUT", "PATCH"]
    app = Starlette(routes=[Route("/{path:path}", world.answer, methods=everything)])
    plain = [each for name, each in sockets.items() if name != "tls"]
    common = {"log_level": "error", "timeout_graceful_shutdown": 1, "lifespan": "off"}
    async with anyio.create_task_group() as group:
        group.start_soon(_serve, uvicorn.Config(app, **common), plain)
        if tls:
            secure = uvicorn.Config(app, ssl_certfile=tls[0], ssl_keyfile=tls[1], **common)
            group.start_soon(_serve, secure, [sockets["tls"]])
        print(ports["server"], flush=True)


async def _serve(config, sockets):
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    await server.serve(sockets=sockets)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="settings", type=json.loads, default={})
    parser.add_argument("--tls", nargs=2)
    given = parser.parse_args()
    fault = given.settings.pop("fault", None)
    anyio.run(main, {**HONEST, **(FAULTS[fault] if fault else {}), **given.settings}, given.tls)
