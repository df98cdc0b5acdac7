# Everything is run in .venv, which each target sets up by itself.
#
#   make demo                        the main job, on an example
#   make test                        lint, types, documentation, doctests, the suite
#   make test-with ENV=/path/python  the suite in an environment of yours
#   make host-suite                  the released pytato's own tests, while recording
#   make host-suite ENV=... SUITE=FOLDER  another pytato's, with and without recording
#   make audit-table                 what the host's transforms do, into doc/ (ENV=...)
#   make bench | fuzz | doc | lint | clean
#
# PYTHON=/path/to/python  which Python .venv is made with
# ARGS=...                further arguments: of pytest, of the benchmark, of the demo

PYTHON = python3
PY = .venv/bin/python
# A .venv that exists is replaced only for a PYTHON that somebody asked for.
KEEP = $(if $(filter file,$(origin PYTHON)),--keep)
SET_UP = "$(PYTHON)" tools/set_up.py $(KEEP) .venv

.NOTPARALLEL:
.PHONY: help demo test test-with suite host-suite audit-table bench fuzz doc doctest \
	lint types clean python ready-demo ready-test

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

python:
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "There is no '$(PYTHON)' here. Install Python 3.10 or later, or say" \
	       "where one is: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "'$(PYTHON)' is not Python 3.10 or later. Say where one is:" \
	       "make PYTHON=/path/to/python" >&2; exit 1; }

ready-demo: python
	@$(SET_UP) pocl

ready-test: python
	@$(SET_UP) pocl,test,doc

demo: ready-demo
	$(PY) -m pytato_provenance run --kernels stdout examples/advection/main.py $(ARGS)

test: lint types doc doctest suite

lint: ready-test
	$(PY) -m ruff check .

types: ready-test
	$(PY) -m basedpyright --pythonpath $(PY)

doc: ready-test
	$(PY) -m sphinx -n -W -q -b html doc doc/_build/html

doctest: ready-test
	$(PY) -m sphinx -n -W -q -b doctest doc doc/_build/doctest

suite: ready-test
	$(PY) -m pytest $(ARGS)

test-with:
	@tools/test_with "$(ENV)" $(ARGS)

host-suite: $(if $(ENV),,ready-test)
	PYTHONPATH="$$PWD" $(if $(ENV),"$(ENV)/bin/python",$(PY)) tools/host_suite.py \
	  $(if $(SUITE),--suite "$(SUITE)") $(ARGS)

audit-table: $(if $(ENV),,ready-test)
	$(if $(ENV),"$(ENV)/bin/python",$(PY)) -m tools.audit_table $(ARGS)

bench: ready-test
	$(PY) -m benchmarks $(ARGS)

fuzz: ready-test
	$(PY) -m pytest -m fuzz --hypothesis-profile=fuzz $(ARGS)

clean:
	rm -rf .venv .venv-* build dist doc/_build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -f pytato_provenance/capture/_walk*.so
