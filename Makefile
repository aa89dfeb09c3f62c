# The project's menu. Every target makes the virtual environment it needs; PYTHON chooses the interpreter.
PYTHON ?= python3

# The tests that cover the protocol and the board's role, run under coverage.
CORE = tests/protocol tests/board tests/serving
# Two tests at a time, as most wait for a process or a socket; whole files, so that what a file starts is started once.
TWICE = -n 2 --dist loadfile

.PHONY: help demo demo-host test test-fast check house bench soak docs pages dist deb matrix board-image clean
.DEFAULT_GOAL := help

help: ## this menu
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv-demo/ready ## a simulated phone behind a real server: prints the URL, runs an MCP session, keeps serving
	.venv-demo/bin/mcpboard demo

demo-host: .venv-demo/ready ## three simulated phones and a board behind one address: two clients want one phone, keeps serving
	.venv-demo/bin/device-host-agent run --demo --data demo/host

test: .venv-test/ready ## the whole test suite; installs what the tests need (pip, npm, and apt when root)
	bash tests/system-packages
	.venv-test/bin/python -m coverage run -m pytest $(CORE)
	.venv-test/bin/python -m coverage report
	.venv-test/bin/python -m pytest $(TWICE) $(addprefix --ignore=,$(CORE))

test-fast: .venv-test/ready ## what needs pip alone, in under 90 seconds
	.venv-test/bin/python -m pytest $(TWICE) -m "not tools and not slow"

check: .venv-check/ready ## ruff (lint and format) and mypy, over package and tests
	.venv-check/bin/ruff check mcpboard tests deploy docs
	.venv-check/bin/ruff format --check mcpboard tests deploy docs
	.venv-check/bin/mypy

house: .venv-test/ready ## measures of the layout: sizes, names, helpers, each with its limit
	.venv-test/bin/python -m tests.house

bench: .venv-test/ready ## the figures of docs/performance.md, side by side in one run; installs what that needs (apt when root)
	.venv-test/bin/python -m tests.bench.needs
	.venv-test/bin/python -m tests.bench

docs: .venv-docs/ready ## the pages of docs/ as a site, in out/site
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build -f deploy/site/mkdocs.yml

pages: .venv-test/ready ## make anew what a program makes of docs/: the pictures, and the page of commands
	.venv-test/bin/python docs/pictures.py
	.venv-test/bin/python docs/commands.py

dist: .venv-dist/ready ## wheel, sdist, the bundle for Claude Desktop and the registry's server.json, in dist/
	.venv-dist/bin/python -m build --outdir dist
	PYTHON=.venv-dist/bin/python deploy/mcpb/build dist
	sed "s/@VERSION@/$$(sed -n 's/^__version__ = "\(.*\)"$$/\1/p' mcpboard/__init__.py)/" deploy/registry/server.json > dist/server.json

soak: .venv-test/ready ## traffic with faults, kills and cuts, ten minutes a part, or SECONDS=N; PARTS=killed is one part only
	SECONDS=$(or $(SECONDS),600) .venv-test/bin/python -m tests.bench.soak $(PARTS)

deb: ## the Debian package of the board role, in dist/
	deploy/debian/build

matrix: .venv-test/ready ## the core and board suites on the versions of OpenWrt and Buildroot, the floors and the latest
	.venv-test/bin/python -m tests.deploy.matrix

board-image: .venv-test/ready ## boot an emulated board of 128 MB with the server on it, and print its figures (root, Debian)
	.venv-test/bin/python -m tests.bench.needs board
	.venv-test/bin/python -m tests.deploy.board_image

clean: ## remove the virtual environments and what was built
	rm -rf .venv-* build dist out demo *.egg-info

.venv-demo/ready: setup.cfg
	$(PYTHON) -m venv --clear .venv-demo
	.venv-demo/bin/pip install -q -e '.[simulator,host]'
	touch $@

.venv-test/ready: setup.cfg
	$(PYTHON) -m venv --clear .venv-test
	.venv-test/bin/pip install -q -e '.[test]'
	touch $@

.venv-docs/ready: setup.cfg
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/pip install -q -e '.[docs]'
	touch $@

.venv-dist/ready:
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/bin/pip install -q build
	touch $@

.venv-check/ready: setup.cfg
	$(PYTHON) -m venv --clear .venv-check
	.venv-check/bin/pip install -q -e '.[dev,test]'
	touch $@
