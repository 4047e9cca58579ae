"""The table of what is a secret in a target, and what is not: one list for everything that shows or writes one (H05).

Each case names a place of a target and has a value `{}` in it. `tests/unit/test_secrecy.py` asks the functions,
`tests/web/test_secrecy.py` drives page, JSON, log, export, store, snippet and form with the same list.
"""

from dataclasses import dataclass
from typing import Literal

from app.core.targets import HttpTarget, StdioTarget

Place = Literal["args", "env", "url", "header"]


@dataclass(frozen=True)
class Case:
    place: Place
    secret: bool
    texts: tuple[str, ...]
    """Arguments; or a name and a value; or what follows the origin of an address."""

    def filled(self, canary: str) -> tuple[str, ...]:
        return tuple(text.replace("{}", canary) for text in self.texts)

    def __str__(self) -> str:
        return f"{self.place}:{' '.join(self.texts)}"[:60]


def _all(place: Place, secret: bool, *cases: tuple[str, ...]) -> list[Case]:
    return [Case(place, secret, texts) for texts in cases]


KEY = "sk-{}-abcdefghijklmnop"
CASES = [
    *_all(
        "args",
        True,
        ("--api-key={}",),
        ("--apiKey={}",),
        ("--api-key", "{}"),
        ("--password", "{}"),
        ("--db-pass={}",),
        ("-password", "{}"),
        ("--token={}",),
        ("--access-token", "{}"),
        ("--client-secret={}",),
        ("--auth", "{}"),
        ("--pat", "{}"),
        ("--key", "{}"),
        ("--dsn=host=h password={}",),
        ("--connection-string", "Server=h;Password={}"),
        ("Server=h;Uid=u;Password={};Port=1",),
        ("host=h password={} port=1",),
        ("-H", "Authorization: Bearer {}"),
        ("--header", "X-Session: {}"),
        ("--header=X-PAT: {}",),
        ("--header", "Authorization:{}"),
        ("Authorization: Basic {}",),
        ("API_KEY={}",),
        ("-e", "GITHUB_TOKEN={}"),
        ("-eDB_PASS={}",),
        ("--env=DATABASE_URL={}",),
        ("-Ddb.password={}",),
        ("--set", "auth.token={}"),
        ("-u", "mara:{}"),
        ("postgres://mara:{}@h/db",),
        ("postgres://mara:a/{}@h/db",),
        ("--db=mysql+pymysql://mara:{}@h:1/db",),
        ("https://{}@sentry.example/1",),
        ("jdbc:postgresql://h/db?user=u&password={}",),
        ("https://h/x?sig={}&page=1",),
        ("https://h/x?code={}",),
        ("https://h/x?pwd={}",),
        ("https://h/x?pat={}",),
        ("https://h/x?%74oken={}",),
        ("https://h/x#access_token={}&x=1",),
        ("https://h/x?next=https%3A%2F%2Fu%3A{}%40h",),
        ("--config", '{"apiKey": "{}", "port": "1"}'),
        ("--config={'url': 1}", "--options", '{"db": {"password":"{}"}}'),
        (KEY,),
        (f"--model={KEY}",),
        ("ghp_{}abcdefghijklmnop",),
        ("xoxb-{}-abcdefghijklmnop",),
        ("eyJ{}abcdefghijklmnopqrst.abc.def",),
        ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",),
        ("-c", "API_KEY={} exec server --verbose"),
        ("-c", "server --password '{} x' --verbose"),
        ("-c", "curl -H 'X-Api-Key: {}' https://u:{}@h/ | cat"),
        ("u:{}@tcp(h:3306)/db",),
        ("u:a/{}@h",),
        ("u:a={}@h",),
        ("--db=u:{}@tcp(h:3306)/db?parseTime=true",),
        ("jdbc:oracle:thin:u/{}@h",),
        ("jdbc:oracle:thin:u/{}@//h:1521/x",),
        ("password:{}",),
        ("/password:{}",),
        ("--password:{}",),
        ("/p:Password={}",),
        ("--set", "apikey:{}"),
        ("--set", "a=1,auth.token:{}"),
        ("--set", 'password = "{}"'),
        ("--set", "password = {}"),
        ("--set", "password", "=", "{}"),
        ("--opts", "user=u,password={}"),
        ("--opts", "user=u,password={},port=1"),
        ("--opts=user=u,password=a,{}",),
        ("--opts", "{'password': '{}'}"),
        ("--password", "-{}"),
        ("--token", "=", "{}"),
        ("--pw", "{}"),
        ("--pw={}",),
        ("--config", '{"a": "{\\"password\\": \\"{}\\"}"}'),
        ("--config", '{"a": "user=u,password={}"}'),
        ("-c", "echo 'password={}' | server"),
    ),
    *_all(
        "args",
        False,
        ("--port", "{}"),
        ("--keyboard", "{}"),
        ("--author={}",),
        ("--passive", "{}"),
        ("--code-style", "{}"),
        ("--code", "{}"),
        ("monkey={}",),
        ("--token-file", "{}"),
        ("--auth-type={}",),
        ("--no-auth", "{}"),
        ("--max-tokens", "{}"),
        ("--session-timeout={}",),
        ("--public-key", "{}"),
        ("--single-pass", "{}"),
        ("--tokenizer={}",),
        ("--secretary", "{}"),
        ("git+ssh://git@h/{}",),
        ("https://h/@scope/{}",),
        ("https://h/{}?page=1&status_code=2",),
        ("user@{}",),
        ("--header", "X-Team: {}"),
        ("--user", "{}"),
        ("--password", "${{}}"),
        ("-e", "DEBUG={}"),
        ("-c", "exec server --verbose {}"),
        ("{}.py",),
        ("--password", "--{}"),
        ("--token", "-v", "{}"),
        ("npm:{}@1.2.3",),
        ("--package=npm:@scope/{}@1.2.3",),
        ("image:{}@sha256:0123",),
        ("C:\\x\\{}@1",),
        ("mailto:{}@h",),
        ("git@h:{}",),
        ("@scope/{}@1.2.3",),
        ("h.example/u/{}@v1",),
        ("run", "auth:{}"),
        ("key:{}",),
        ("tokenizer:{}",),
        ("--set", "user=u,max_tokens={}"),
        ("--set", "port = {}"),
        ("/out:{}",),
        ("--config", '{"a": "{\\"port\\": \\"{}\\"}"}'),
    ),
    *_all(
        "env",
        True,
        ("API_KEY", "{}"),
        ("DB_PASS", "{}"),
        ("PGPASSWORD", "{}"),
        ("MYSQL_PWD", "{}"),
        ("DATABASE_URL", "{}"),
        ("SENTRY_DSN", "{}"),
        ("GITHUB_PAT", "{}"),
        ("AWS_SECRET_ACCESS_KEY", "{}"),
        ("AWS_ACCESS_KEY_ID", "{}"),
        ("authToken", "{}"),
        ("SESSION", "{}"),
        ("SLACK_WEBHOOK_URL", "{}"),
        ("PASSWORD1", "{}"),
        ("AUTH_HEADER", "Bearer {}"),
        ("HARMLESS", "postgres://mara:{}@h/db"),
        ("OPTIONS", "--password {}"),
        ("CONFIG", '{"token": "{}"}'),
        ("ODD", KEY),
        ("OPTS", "-Dpassword={}"),
        ("OPTS2", "-Xmx1g -Dpassword={}"),
        ("OPTS3", "user=u,password={}"),
        ("OPTS4", "password:{}"),
        ("DB_PW", "{}"),
        ("DB", "u:{}@tcp(h:3306)/db"),
    ),
    *_all(
        "env",
        False,
        ("DESK_DB", "{}"),
        ("PWD", "{}"),
        ("KEYBOARD", "{}"),
        ("MONKEY", "{}"),
        ("PATIENCE", "{}"),
        ("GIT_AUTHOR", "{}"),
        ("SSH_AUTH_SOCK", "{}"),
        ("TOKEN_FILE", "{}"),
        ("MAX_TOKENS", "{}"),
        ("TOKENIZERS_PARALLELISM", "{}"),
        ("XDG_SESSION_TYPE", "{}"),
        ("HOMEPAGE", "https://h/{}?page=1"),
        ("OPTS5", "-Dport={}"),
        ("IMAGE", "auth:{}"),
    ),
    *_all(
        "url",
        True,
        ("/mcp?sig={}",),
        ("/mcp?code={}&page=1",),
        ("/mcp?pwd={}",),
        ("/mcp?pat={}",),
        ("/mcp?api_key={}",),
        ("/mcp?apiKey={}",),
        ("/mcp?session={}",),
        ("/mcp?X-Amz-Signature={}",),
        ("/mcp;jsessionid={}",),
        ("/mcp#access_token={}",),
        (f"/mcp?x={KEY}",),
    ),
    *_all(
        "url",
        False,
        ("/{}?page=1",),
        ("/mcp?page={}",),
        ("/mcp?country_code={}",),
        ("/mcp?author={}",),
        ("/@scope/{}",),
    ),
    *_all(
        "header",
        True,
        ("Authorization", "Bearer {}"),
        ("X-Session", "{}"),
        ("X-Passwd", "{}"),
        ("X-PAT", "{}"),
        ("X-Api-Key", "{}"),
        ("Cookie", "a={}"),
        ("Proxy-Authorization", "{}"),
        ("X-Signature", "{}"),
        ("Referer", "https://h/?token={}"),
        ("X-Odd", KEY),
    ),
    *_all("header", False, ("X-Team", "{}"), ("X-Author", "{}"), ("X-Keyboard", "{}"), ("Referer", "https://h/{}")),
]


def target_of(case: Case, canary: str, url: str = "http://127.0.0.1:9") -> StdioTarget | HttpTarget:
    """A target that has the case in it and nothing else."""
    texts = case.filled(canary)
    if case.place == "args":
        return StdioTarget(command="server", args=texts)
    if case.place == "env":
        return StdioTarget(command="server", env={texts[0]: texts[1]})
    if case.place == "url":
        return HttpTarget(transport="http", url=url + texts[0])
    return HttpTarget(transport="http", url=f"{url}/mcp", headers={texts[0]: texts[1]})
