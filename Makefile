# `make run` and `make test` need Python >= 3.11 and make: everything else is installed into .venv.
PYTHON ?= python3
UV := .venv/bin/uv
BIN := .venv/bin

.PHONY: run test check bench clean

run: .venv/run.stamp
	$(BIN)/python -m bot run

test: .venv/dev.stamp
	$(BIN)/pytest -q -n 2 --dist loadfile $(ARGS)

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp
	$(BIN)/python -m bench $(ARGS)

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
