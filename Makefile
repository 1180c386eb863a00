# Every target prepares what it needs first. A new target is its line, with `venv`, `tmux` or `shells` before the `;`.

PY = .venv/bin/python

# Two processes share a small machine; what fails between them has to pass alone.
test: venv shells ; @$(PY) -m pytest -n 2 $(ARGS) || $(PY) -m pytest --last-failed --last-failed-no-failures none $(ARGS)
test-mutants: venv tmux ; @$(PY) -m tests.mutants $(ARGS)
snapshots: venv ; @$(PY) -m tests.snapshots
test-shells: venv shells ; @$(PY) -m scripts.shells $(ARGS)
test-long: venv tmux ; @nice $(PY) -m tests.model_capture_since --lines 1000000 --history-limit 100 --history-limit 2000 --history-limit 50000 $(ARGS)
test-chaos: venv tmux ; @nice $(PY) -m scripts.chaos $(ARGS)
test-fuzz: venv tmux ; @nice $(PY) -m scripts.fuzz $(ARGS)
soak: venv tmux ; @nice $(PY) -m scripts.soak $(ARGS)
test-tmux: venv shells ; @$(PY) -m scripts.matrix $(ARGS)
test-compat: venv shells ; @$(PY) -m scripts.compat $(ARGS)
test-clients: venv tmux ; @$(PY) -m scripts.clients $(ARGS)
demo: venv tmux ; @$(PY) -m scripts.demo
bench: venv tmux ; @$(PY) -m scripts.bench $(ARGS)
lint: venv
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(PY) scripts/claims.py
docs: venv ; @$(PY) -m sphinx -a -E -W --keep-going -n -q docs build/docs && echo build/docs/index.html
examples: venv tmux ; @$(PY) -m scripts.examples && $(PY) -m scripts.generate
generate: venv ; @$(PY) -m scripts.generate
lock: venv ; @scripts/lock $(ARGS)

.PHONY: docs venv tmux shells
venv: ; @scripts/bootstrap
tmux: ; @scripts/need tmux
shells: ; @scripts/need tmux bash zsh fish dash mksh ksh
