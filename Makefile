# Parley's commands. Everything is installed below this directory, from the hash-pinned lists in .lock/;
# nothing but python3 (3.11 or newer, with venv) and make has to be on the machine.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
UV     := $(VENV)/bin/uv
MCP1   := .venv-mcp1
FASTMCP := .venv-fastmcp
NODE   := tests/servers/node
CONFORMANCE := tests/conformance
SCRIPTS := tests/scripts
OLD    := mcp-1-6 mcp-1-9-3 fastmcp-2-3 fastmcp-3-4
PYTEST_ARGS ?=

# Some machines set it, and then each of the hundreds of processes of a run compiles all of Parley again.
unexport PYTHONDONTWRITEBYTECODE

# uv is fast; pip knows a mirror that is set up only for pip.
install = $(UV) pip install --quiet --python $(1) --only-binary :all: --require-hashes -r $(2) \
	|| $(PY) -m pip --python $(1) install --quiet --only-binary :all: --require-hashes -r $(2)
compile = $(UV) pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --constraints .lock/constraints.in --custom-compile-command "make lock"

.DELETE_ON_ERROR:
.PHONY: help run test test-team load test-peers conformance attacks long-task check format coverage fuzz bench load-room screenshots pictures setup chromium lock clean

help:
	@echo "make run          start Parley with the demo one click away (ARGS=... goes to its command line)"
	@echo "make test         set up everything, check, and run all tests (PYTEST_ARGS=... adds to pytest)"
	@echo "make test-team    Parley for a team alone; on Debian root gets nginx-light and bubblewrap, which show all of it"
	@echo "make load         200 sessions on two replicas for ten minutes, and 50 to 400 (LOAD=--short for a try)"
	@echo "make test-peers   real servers on old SDKs, in virtual environments of their own"
	@echo "make conformance  every scored scenario of the public conformance suite, with Parley as the client"
	@echo "make attacks      the attacks and odd servers alone, as one table"
	@echo "make long-task    the browser test of a task that takes 30 seconds"
	@echo "make check        style, types, layers, templates, scripts and styles; seconds"
	@echo "make format       let the tools put style and imports right"
	@echo "make coverage     which lines and branches of app/ the tests reach (TESTS=... for some tests only); slow"
	@echo "make fuzz         the tests with drawn examples again, with new ones, and more of them"
	@echo "make bench        measure what README.md claims"
	@echo "make load-room    three hundred phones answer one question within ten seconds; prints what it measured"
	@echo "make screenshots  take the pictures of every page"
	@echo "make pictures     the same with frozen clock and ids, to compare two commits (OUT=folder CHECKOUT=folder)"
	@echo "make lock         write the pinned lists anew (UPGRADE=--upgrade takes newer releases)"
	@echo "make clean        remove everything that make has made"

run: $(VENV)/.runtime
	$(PY) -m app $(ARGS)

# In two halves, one after the other.
test: setup check
	$(PY) -m tests.halves $(PYTEST_ARGS)

# What this machine lacks (a sandbox, a proxy) is installed where that may be done, else said first and at the end.
test-team: setup
	$(PY) -m tests.team_tools
	$(PY) -m tests.again -n 2 --dist worksteal tests/team tests/isolation $(PYTEST_ARGS)
	$(PY) -m tests.again -n 2 --dist worksteal tests/store --store postgres $(PYTEST_ARGS)
	$(PY) -m tests.again -n 2 tests/scale $(PYTEST_ARGS)
	$(PY) -m tests.again -n 0 tests/browser/test_team.py tests/browser/test_team_together.py $(PYTEST_ARGS)

test-peers: $(VENV)/.dev $(OLD:%=$(VENV)/.old-%)
	$(PY) -m tests.again -n 2 --dist worksteal tests/old_peers $(PYTEST_ARGS)

conformance: $(VENV)/.conformance
	$(PY) -m tests.conformance

attacks: setup
	$(PY) -m tests.attacks

# Half an hour and more; LOAD=--short tries it in some minutes.
load: setup
	$(PY) -m tests.team_tools
	$(PY) -m tests.load $(LOAD)

long-task: setup
	PARLEY_TASK_SECONDS=30 $(PY) -m pytest -q -n 0 tests/browser/test_tasks.py

check: $(VENV)/.dev $(SCRIPTS)/node_modules/.package-lock.json
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PY) -m tests.templates_lint
	$(PY) -m tests.peers biome check
	$(PY) -m tests.peers node --test --test-reporter=dot '$(SCRIPTS)/test_*.js'

format: $(VENV)/.dev $(SCRIPTS)/node_modules/.package-lock.json
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m tests.peers biome check --write

# A test that only fails because measuring is slow is shown, and does not cost the figure.
coverage: setup
	$(PY) -m coverage erase
	-$(PY) -m coverage run -m pytest -n 3 --dist worksteal \
		$(or $(TESTS),--ignore=tests/browser --ignore=tests/old_peers) $(PYTEST_ARGS)
	$(if $(TESTS),,-$(PY) -m coverage run -m pytest -n 2 --dist worksteal tests/browser $(PYTEST_ARGS))
	$(PY) -m coverage combine --quiet
	$(PY) -m coverage report

# What is found here becomes an `@example` of its test. Again and again: each run draws anew.
fuzz: setup
	$(PY) -m pytest -n 2 --dist worksteal -m hypothesis --hypothesis-profile=fuzz $(or $(TESTS),--ignore=tests/browser --ignore=tests/old_peers) $(PYTEST_ARGS)

bench: setup
	$(PY) -m tests.bench

load-room: setup
	$(PY) -m tests.load_room

screenshots: setup
	$(PY) -m tests.screenshots

pictures: setup
	$(PY) -m tests.pictures $(or $(OUT),.frozen) $(if $(CHECKOUT),--checkout $(CHECKOUT))

# --- what the commands need; a stamp is older than its list when the list has changed ------------------------------

setup: $(VENV)/.dev $(VENV)/.mcp1 $(VENV)/.fastmcp $(VENV)/.npm $(VENV)/.conformance chromium

$(VENV)/.bootstrap: .lock/build.txt
	@command -v $(PYTHON) >/dev/null || { \
		echo "Parley needs Python 3.11 or newer, and there is no $(PYTHON) here: install it, or name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Parley needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name a newer one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) comes without its venv module: install it (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip --disable-pip-version-check install --quiet --only-binary :all: --require-hashes -r .lock/build.txt
	@touch $@

$(VENV)/.runtime: .lock/runtime.txt $(VENV)/.bootstrap
	@echo "Installing Parley's dependencies"
	@$(call install,$(PY),.lock/runtime.txt)
	@touch $@

$(VENV)/.dev: .lock/dev.txt $(VENV)/.bootstrap
	@echo "Installing the dependencies and the development tools"
	@$(call install,$(PY),.lock/dev.txt)
	@touch $(VENV)/.runtime $@

$(VENV)/.mcp1: .lock/peer-mcp1.txt $(VENV)/.bootstrap
	@echo "Installing the peer on the previous MCP SDK into $(MCP1)"
	@rm -rf $(MCP1)
	@$(PY) -m venv --without-pip $(MCP1)
	@$(call install,$(MCP1)/bin/python,.lock/peer-mcp1.txt)
	@touch $@

$(VENV)/.fastmcp: .lock/peer-fastmcp.txt $(VENV)/.bootstrap
	@echo "Installing the peer on FastMCP into $(FASTMCP)"
	@rm -rf $(FASTMCP)
	@$(PY) -m venv --without-pip $(FASTMCP)
	@$(call install,$(FASTMCP)/bin/python,.lock/peer-fastmcp.txt)
	@touch $@

$(VENV)/.npm: $(NODE)/package.json $(NODE)/package-lock.json $(NODE)/.npmrc $(VENV)/.dev
	@echo "Installing the peers from npm"
	@$(PY) -m tests.peers npm ci --no-progress --loglevel=error
	@touch $@

$(VENV)/.conformance: $(CONFORMANCE)/package.json $(CONFORMANCE)/package-lock.json $(CONFORMANCE)/.npmrc $(VENV)/.dev
	@echo "Installing the public conformance suite from npm"
	@$(PY) -m tests.peers conformance ci --no-progress --loglevel=error
	@touch $@

# No stamp: npm leaves this file behind, and it is the newest when all of it is there.
$(SCRIPTS)/node_modules/.package-lock.json: $(SCRIPTS)/package.json $(SCRIPTS)/package-lock.json $(SCRIPTS)/.npmrc | $(VENV)/.dev
	@echo "Installing what checks scripts and styles from npm"
	@$(PY) -m tests.peers scripts ci --no-progress --loglevel=error
	@touch $@

$(OLD:%=$(VENV)/.old-%): $(VENV)/.old-%: .lock/peer-old-%.txt $(VENV)/.bootstrap
	@echo "Installing the peer on $* into .venv-old-$*"
	@rm -rf .venv-old-$*
	@$(PY) -m venv --without-pip .venv-old-$*
	@$(call install,.venv-old-$*/bin/python,.lock/peer-old-$*.txt)
	@touch $@

chromium: $(VENV)/.dev
	@$(PY) -m tests.chromium $(VENV)/.chromium

# --- keeping house -------------------------------------------------------------------------------------------------

lock: $(VENV)/.dev
	$(compile) pyproject.toml --extra models --extra team --extra postgres --output-file .lock/runtime.txt
	$(compile) --group build --constraints .lock/runtime.txt --output-file .lock/build.txt
	$(compile) pyproject.toml --extra models --extra team --extra postgres --group dev --constraints .lock/runtime.txt --constraints .lock/build.txt \
		--output-file .lock/dev.txt
	$(compile) --group peer-mcp1 --output-file .lock/peer-mcp1.txt
	$(compile) --group peer-fastmcp --output-file .lock/peer-fastmcp.txt
	$(foreach old,$(OLD),$(compile) --group peer-old-$(old) --output-file .lock/peer-old-$(old).txt &&) true
	$(PY) -m tests.peers npm install --package-lock-only --no-progress --loglevel=error
	$(PY) -m tests.peers conformance install --package-lock-only --no-progress --loglevel=error
	$(PY) -m tests.peers scripts install --package-lock-only --no-progress --loglevel=error

clean:
	rm -rf $(VENV) $(MCP1) $(FASTMCP) $(OLD:%=.venv-old-%) $(NODE)/node_modules $(CONFORMANCE)/node_modules $(SCRIPTS)/node_modules dist build .screenshots .frozen .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find app tests -name __pycache__ -type d -prune -exec rm -rf {} +
