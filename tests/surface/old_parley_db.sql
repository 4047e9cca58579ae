-- A parley.db as the first version wrote it. It must open for ever.
BEGIN TRANSACTION;
CREATE TABLE targets (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, missing TEXT NOT NULL,
    options TEXT NOT NULL, used REAL NOT NULL
) STRICT;
INSERT INTO targets VALUES('tlOiZqUvHNlzo','local','My server','{"transport":"stdio","command":"python3","args":["server.py","--verbose"],"env":{"MODE":"test"},"cwd":"/srv","secret":[]}','[]','{"era":"legacy","request_timeout_ms":5000}',1794881778.2926118);
INSERT INTO targets VALUES('tlAYSYy5fO73e','local','Over HTTP','{"transport":"http","url":"http://127.0.0.1:9/mcp","headers":{"X-Plain":"kept"},"secret":[]}','["Authorization"]','{}',1794881778.3897519);
INSERT INTO targets VALUES('td8S6I5rxJBow','local','','{"transport":"stdio","command":"true","args":[],"env":{},"cwd":null,"secret":[]}','[]','{}',1794881778.439204);
COMMIT;
PRAGMA user_version = 1;
