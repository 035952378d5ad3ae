# `make run` and `make test` need Python >= 3.11 and make: everything else is installed into .venv.
PYTHON ?= python3
UV := .venv/bin/uv
BIN := .venv/bin

WEAVIATE := github.com/weaviate/weaviate/cmd/weaviate-server@v1.39.2

.PHONY: run test check bench weaviate slack-bolt clean

run: .venv/run.stamp
	$(BIN)/python -m bot run

test: .venv/dev.stamp
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp
	$(BIN)/python -m bench $(ARGS)

# A server to try and to test with: two minutes the first time.
weaviate: .tools/weaviate-server

.tools/weaviate-server:
	@command -v go >/dev/null || { echo "Weaviate is built with Go 1.26 or newer: install it from https://go.dev/dl" >&2; exit 1; }
	GOBIN=$(CURDIR)/.tools go install $(WEAVIATE)

# Slack's own client for Node, to which the tests' Slack server is held.
slack-bolt: .tools/slack-bolt/node_modules

.tools/slack-bolt/node_modules:
	@command -v npm >/dev/null || { echo "it needs Node 20 or newer and npm" >&2; exit 1; }
	npm install --silent --no-audit --no-fund --prefix .tools/slack-bolt @slack/bolt@5.1.0

$(UV):
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check uv

.venv/run.stamp: $(UV) uv.lock pyproject.toml
	$(UV) sync -q --frozen --no-dev --inexact
	touch $@

.venv/dev.stamp: $(UV) uv.lock pyproject.toml
	$(UV) sync -q --frozen --inexact
	touch $@

clean:
	rm -rf .venv
