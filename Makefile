# Every target makes its own .venv from the lock file; nothing else is needed for `demo` and `test`.
PYTHON ?= python3
VENV := .venv
# The real services mostly wait, so files of tests run beside each other, each on services of its own.
JOBS ?= 3
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

.PHONY: help demo test cover test-real real bench lint lock clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

$(VENV)/.ready: requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "this needs Python 3.11 or later, and $(PYTHON) is older; with another: make PYTHON=python3.12 …")'
	@echo "installing the locked packages into $(VENV): once, and silent for about a minute …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.ready   ## the main job on the embedded world: no cluster, no Mattermost, no account
	@$(BIN)/python -m bot demo $(ARGS)

test: $(VENV)/.ready   ## everything that needs no Go
	@$(BIN)/pytest -n auto --dist worksteal $(ARGS)

cover: $(VENV)/.ready  ## the pure core, which has to be covered branch by branch
	@$(BIN)/pytest -n auto tests/core --cov=bot.core --cov-branch --cov-report=term:skip-covered --cov-fail-under=100

lint: $(VENV)/.ready   ## ruff, mypy strict, import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports

test-real: $(VENV)/.ready   ## stories and contracts on the real services, the demo in a browser (builds once; Go, Debian)
	@tests/real/install.sh
	@$(BIN)/python -m tests.real.rig.build
	@$(BIN)/pytest -m "real or cargo or browser" -n $(JOBS) --dist loadfile --no-loadscope-reorder --timeout=300 $(ARGS)

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
