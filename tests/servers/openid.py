"""An OpenID provider on loopback, built on Authlib, which does as it is told while it runs: `python openid.py`.

Prints its port. `GET /control` says what it is and saw; `POST /control` changes settings:

    user      the claims of whoever presses the button
    claims    members of the ID token that replace honest ones; null takes one out
    callback  members of the answer to the browser; null takes one out
    metadata  members of the discovery document; null takes one out
    key       "published", or "stranger": a key that signs and that nobody is told of
    method    how a client proves itself: "client_secret_basic", "client_secret_post", "none"
    replays   whether a code works as often as somebody likes
    now       "rotate": from now on another key signs, which is published
"""

import os
import secrets
import socket
import time

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # it serves loopback

import anyio
import uvicorn
from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import AuthorizationServer, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import UserInfo
from authlib.oidc.core.grants import OpenIDCode
from authorization import METHODS, Asked, Client, Code, _merged
from joserfc.jwk import KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

HONEST = {
    "user": {"sub": "u-1", "name": "Grace Hopper", "email": "grace@example.com", "email_verified": True},
    "claims": {},
    "callback": {},
    "metadata": {},
    "key": "published",
    "method": "client_secret_basic",
    "replays": False,
}
SECRET = "canary-client-secret-5b1f"


def _new_key():
    return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})


class OpenCode(Code):
    def __init__(self, request):
        super().__init__(request)
        self.nonce = request.payload.data.get("nonce")

    def get_nonce(self):
        return self.nonce

    def get_auth_time(self):
        return int(self.at)

    def get_acr(self):
        return None

    def get_amr(self):
        return None


class ByCode(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def generate_authorization_code(self):
        return self.server.secret("code")

    def save_authorization_code(self, code, request):
        self.server.codes[code] = OpenCode(request)

    def query_authorization_code(self, code, client):
        found = self.server.codes.get(code)
        if not self.server.settings["replays"]:
            self.server.codes.pop(code, None)
        return found

    def delete_authorization_code(self, authorization_code):
        pass

    def authenticate_user(self, authorization_code):
        return self.server.settings["user"]


class IdToken(OpenIDCode):
    def __init__(self, server):
        super().__init__(require_nonce=True)
        self.server = server

    def exists_nonce(self, nonce, request):
        return False

    def get_client_algorithm(self, client):
        return "RS256"

    def get_encode_header(self, client):
        return {"alg": "RS256", "kid": self.server.key.kid}

    def resolve_client_private_key(self, client):
        return _new_key() if self.server.settings["key"] == "stranger" else self.server.key

    def get_compatible_claims(self, request):
        now = int(time.time())
        return {"iss": self.server.base, "aud": [request.client["client_id"]], "iat": now, "exp": now + 300}

    def generate_user_info(self, user, scope):
        return UserInfo(user)

    def get_authorization_code_claims(self, authorization_code):
        return super().get_authorization_code_claims(authorization_code)

    def encode_id_token(self, token, request):
        honest = self.generate_user_info
        changed = self.server.settings["claims"]
        if "at_hash" in changed:  # a token of somebody else beside an honest ID token
            token = {**token, "access_token": "another"}
        claims = {key: value for key, value in changed.items() if value is not None and key != "at_hash"}
        self.generate_user_info = lambda user, scope: UserInfo({**user, **claims})
        try:
            for name in [name for name, value in changed.items() if value is None]:
                if name == "nonce":
                    request.authorization_code.nonce = None
            text = super().encode_id_token(token, request)
        finally:
            self.generate_user_info = honest
        self.server.secrets.append(text)
        return text


class Provider(AuthorizationServer):
    """One provider with one client, whose name is `parley`."""

    def __init__(self, base):
        super().__init__()
        self.base, self.settings = base, dict(HONEST)
        self.key = _new_key()
        self.codes, self.saw, self.secrets = {}, [], [SECRET]
        self.register_grant(ByCode, [CodeChallenge(required=True), IdToken(self)])
        self.register_token_generator("default", BearerTokenGenerator(lambda *_, **__: self.secret("access")))

    def secret(self, kind):
        made = f"canary-{kind}-{secrets.token_hex(16)}"
        self.secrets.append(made)
        return made

    def query_client(self, client_id):
        if client_id != "parley":
            return None
        back = ["https://parley.example/login/oidc/callback"]
        method = self.settings["method"]
        found = {"client_id": client_id, "redirect_uris": back, "token_endpoint_auth_method": method}
        return Opened(found | ({} if method == "none" else {"client_secret": SECRET}))

    def save_token(self, token, request):
        pass

    def validate_requested_scope(self, scope):
        pass

    def send_signal(self, name, *args, **kwargs):
        pass

    def create_oauth2_request(self, request):
        return request if isinstance(request, OAuth2Request) else Asked(request)

    def handle_response(self, status, body, headers):
        shown = JSONResponse if isinstance(body, dict) else Response
        return shown(body, status, dict(headers))

    def metadata(self):
        honest = {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "jwks_uri": f"{self.base}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": [self.settings["method"]],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _merged(honest, self.settings["metadata"])

    async def answer(self, request):
        request.state.form, request.state.json = {}, None
        if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            request.state.form = dict(await request.form())
        path = request.url.path
        if path == "/control":
            return await self.control(request)
        self.saw.append({"path": path, "form": request.state.form, "query": dict(request.query_params)})
        if path == "/.well-known/openid-configuration":
            return JSONResponse(self.metadata())
        if path == "/keys":
            return JSONResponse(KeySet([self.key]).as_dict(private=False))
        if path == "/authorize":
            return self.authorize(request)
        if path == "/token" and request.method == "POST":
            return self.create_token_response(request)
        return PlainTextResponse("Not found", 404)

    def authorize(self, request):
        """The page on which somebody signs in; what they press goes back to the client."""
        try:
            grant = self.get_consent_grant(request, self.settings["user"])
        except OAuth2Error as fault:
            return PlainTextResponse(str(fault), 400)
        if request.method == "GET":
            form = '<form method="post"><button name="say" value="allow">Sign in as the test user</button></form>'
            return HTMLResponse(f'<!doctype html><html lang="en"><title>Test provider</title><h1>Sign in</h1>{form}')
        user = self.settings["user"] if request.state.form.get("say") == "allow" else None
        answer = self.create_authorization_response(grant.request, user, grant)
        path, _, query = answer.headers["location"].partition("?")
        known = dict(Request({"type": "http", "query_string": query.encode()}).query_params.items())
        whole = _merged({"iss": self.base, **known}, self.settings["callback"])
        return RedirectResponse(add_params_to_uri(path, whole.items()), 303)

    async def control(self, request):
        said = await request.json() if request.method == "POST" else {}
        now = said.pop("now", None)
        if now == "rotate":
            self.key = _new_key()
        if now == "anew":
            self.settings = dict(HONEST)
        self.settings.update(said)
        return JSONResponse({"issuer": self.base, "saw": self.saw, "secrets": self.secrets})


class Opened(Client):
    def get_allowed_scope(self, scope):
        return scope


async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    provider = Provider(f"http://127.0.0.1:{port}")
    app = Starlette(routes=[Route("/{path:path}", provider.answer, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="off"))
    print(port, flush=True)
    await server.serve([listening])


if __name__ == "__main__":
    anyio.run(main)
