# Every target makes its own .venv from the lock file; nothing else is needed for `demo` and `test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help demo test test-real real bench lint lock clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

$(VENV)/.ready: requirements-dev.lock
	@echo "installing the locked packages into $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.ready   ## the main job on the embedded world: no cluster, no Mattermost, no account
	@$(BIN)/python -m bot demo $(ARGS)

test: $(VENV)/.ready   ## everything that needs no Go
	@$(BIN)/pytest --cov --cov-report=term:skip-covered $(ARGS)

lint: $(VENV)/.ready   ## ruff, mypy strict, import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports

test-real: $(VENV)/.ready   ## stories and contracts on the real services, the demo in a browser (builds once; Go, Debian)
	@tests/real/install.sh
	@$(BIN)/python -m tests.real.rig.build
	@$(BIN)/pytest -m "real or cargo or browser" --timeout=300 $(ARGS)

real: $(VENV)/.ready   ## the main job, played on the real services and printed
	@tests/real/install.sh
	@$(BIN)/python -m tests.real.rig.build
	@$(BIN)/python -m tests.real.play $(ARGS)

bench: $(VENV)/.ready   ## what it costs, beside its floor
	@$(BIN)/python -m bench $(ARGS)

UV := uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --extra demo pyproject.toml
lock:   ## resolve the newest versions that pyproject.toml allows (needs uv)
	@$(UV) -o requirements.lock
	@$(UV) --group dev -o requirements-dev.lock

clean:  ## remove what the targets made
	@rm -rf $(VENV) .coverage .pytest_cache .mypy_cache .ruff_cache
