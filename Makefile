# Every command of the project. CI calls these and nothing else.
#
# Environments, each made when a target needs it and again when what it is made from has changed:
#   .venv            Warren interpreted from src/, with the tools and the tests' clients
#   .venv-compiled   Warren compiled and installed from a wheel, as a user gets it
#   .venv-spark      Spark, a Java for where there is none, and Warren from src/
#   .venv-spark-4.0  an older Spark, in front of what .venv-spark has; one for each requirements/spark-*.txt
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
COMPILED := .venv-compiled
SPARK := .venv-spark
SPARK_VERSIONS := $(patsubst requirements/spark-%.txt,%,$(wildcard requirements/spark-*.txt))
OLDER_SPARKS := $(SPARK_VERSIONS:%=$(SPARK)-%/.ready)
# Which of the long tests are run: all, or a part such as 2/8.
PART ?= long
DUE_SPARKS = $(patsubst %,$(SPARK)-%/.ready,$(shell $(PYTHON) tests/part.py $(PART) $(sort $(SPARK_VERSIONS))))
ENVIRONMENT = $(or $(PYTHON),python3) tools/environment.py
SOURCES := $(shell find src -name '*.py' -o -name '*.pxd' -o -name '*.c' -o -name '*.h')
INTERFACE := src/warren/management/static/index.html
INTERFACE_INPUTS := $(shell find ui -name node_modules -prune -o -type f -print) tools/interface.py
BUILD_INPUTS := pyproject.toml setup.py README.md LICENSE tools/environment.py requirements/build.txt
# What a target passes on, as in: make run ARGS="--port 5673"
ARGS ?=
SECONDS ?= 300
SEEDS ?= 1000
KILLS ?= 20
CUTS ?= 150
# The rows of the measured tables: all of bench/run.py but Spark's.
COMPARED := memory idle a16 a1k sync50 writes fanout10 topic1000 latency b16 b1k 20x20 sync50p latencyp \
	rate1000 rate5000 rate1000p rate5000p qrate1000 srate1000 store links

.DEFAULT_GOAL := help
.PHONY: help setup run cluster test test-long check lint format test-unit test-tidy test-conformance test-integration \
	clients clients-away spark spark-versions sim mutation ui ui-types crash prove-cluster prove-links fuzz oracle bench bench-compare demo pictures dist clean

help:  ## list every target
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready $(COMPILED)/.tests  ## make both environments; the other targets do it when they need it

# Its data is in data/warren, unless ARGS, a variable or a file says otherwise.
run: $(COMPILED)/.built  ## start a broker (compiled if there is a C compiler): make run ARGS="--port 5673"
	@grep -qx compiled $(COMPILED)/warren-build || echo "Running interpreted, which is slower; $$(cat $(COMPILED)/warren-build)"
	@XDG_DATA_HOME=$(CURDIR)/data exec $(COMPILED)/bin/warren serve $(ARGS)

# Their data are in data/cluster.
cluster: $(COMPILED)/.built  ## start a cluster of three nodes on this machine: make cluster ARGS="--offset 100"
	@$(COMPILED)/bin/python tools/local_cluster.py --warren $(COMPILED)/bin/warren --data $(CURDIR)/data/cluster $(ARGS)

test: setup $(SPARK)/.ready  ## lint, and the tests on both builds; the last line counts them
	@$(VENV)/bin/python tests/run.py

test-long:  ## what `make test` leaves out, with fresh seeds: older Sparks, more clients, mutations and fuzzing; a share: make test-long PART=2/8
	@$(MAKE) setup $(SPARK)/.ready $(DUE_SPARKS)
	@$(VENV)/bin/python tests/run.py --part $(PART)

check: $(VENV)/.ready  ## the quick part, before a commit: lint, unit and tidy tests, interpreted, without those marked slow
	@$(VENV)/bin/python tests/run.py --build interpreted --part gate --quick lint unit tidy

lint: $(VENV)/.ready  ## ruff, mypy --strict and the import contracts
	@$(VENV)/bin/python tests/run.py --build interpreted lint

format: $(VENV)/.ready  ## put the code into the project's format
	@$(VENV)/bin/ruff check --quiet --fix . ; $(VENV)/bin/ruff format .

test-unit test-conformance test-integration: test-%: setup
	@$(VENV)/bin/python tests/run.py $*

test-unit:         ## one module at a time, on both builds
test-conformance:  ## the specification, byte by byte, on both builds
test-integration:  ## a started broker: sockets, TLS, the command line, on both builds

test-tidy: $(VENV)/.ready  ## the project's own rules
	@$(VENV)/bin/python tests/run.py --build interpreted tidy

spark: setup $(SPARK)/.ready  ## the Spark connector, in an environment of its own
	@$(VENV)/bin/python tests/run.py --build interpreted spark

spark-versions: setup $(OLDER_SPARKS)  ## what every version of Spark has to keep of it, with each older one
	@$(VENV)/bin/python tests/run.py --build interpreted $(SPARK_VERSIONS:%=spark-%)

clients: setup  ## other people's clients and their own tests, against a started broker; one: make clients ARGS=kombu
	@$(COMPILED)/bin/python tests/clients/run.py $(ARGS)

clients-away: setup  ## the same against a cluster of three nodes, with every queue on another node than its clients
	@$(COMPILED)/bin/python tests/clients/run.py --away $(ARGS)

sim: setup  ## power cuts on a simulated disk, by seeds: make sim SEEDS=10000
	@SEEDS=$(SEEDS) $(VENV)/bin/python tests/run.py sim

mutation: $(VENV)/.ready  ## mistakes planted in the store and the journal, each of which a test must see
	@$(VENV)/bin/python tests/run.py --build interpreted mutation

crash: setup  ## a busy broker killed again and again, its disk cut off: make crash KILLS=200 CUTS=1000
	@$(COMPILED)/bin/python tests/crash/kill.py --kills $(KILLS)
	@$(COMPILED)/bin/python tests/crash/power.py --cuts $(CUTS)
	@$(COMPILED)/bin/python tests/crash/staged.py --kills $(KILLS)

# An hour; make prove-cluster ARGS="--minutes 5 --only kill" runs a part.
prove-cluster: setup  ## quorum queues on three and five nodes whose network, processes, disks and members fail for an hour
	@$(COMPILED)/bin/python tests/cluster/prove.py $(ARGS)

# Half an hour; make prove-links ARGS="--only shovel" runs a part.
prove-links: setup  ## 200,000 messages over each kind of link while it is cut and its brokers are killed (needs rabbitmq-server)
	@$(COMPILED)/bin/python tests/links/prove.py $(ARGS)

fuzz: setup  ## hostile bytes, for SECONDS=300: make fuzz SECONDS=3600
	@$(COMPILED)/bin/python tests/fuzz/run.py --seconds $(SECONDS) $(ARGS)

oracle: setup  ## the same scripts against Warren and a real RabbitMQ (needs rabbitmq-server)
	@$(COMPILED)/bin/python -m pytest tests/oracle $(ARGS)

bench: setup  ## the table of figures, beside RabbitMQ's where rabbitmq-server is installed
	@$(COMPILED)/bin/python bench/run.py $(ARGS)

# Twenty minutes on a machine that does nothing else; make bench-compare ARGS="--rows store" renews one table.
bench-compare: setup  ## measure beside RabbitMQ, save it in bench/history, and write the tables of the README and the guide
	@$(COMPILED)/bin/python bench/run.py --save $(or $(ARGS),--rows $(COMPARED))
	@$(COMPILED)/bin/python bench/report.py

demo: $(SPARK)/.ready $(COMPILED)/.built  ## a shop sells for a minute, is archived with Spark, and reported on
	@grep -qx interpreted $(SPARK)/warren-build || { echo "no demo: $$(cat $(SPARK)/warren-build)"; exit 1; }
	@$(SPARK)/bin/python demo/run.py --warren $(COMPILED)/bin/warren $(ARGS)

pictures: $(SPARK)/.ready $(COMPILED)/.built  ## make the pictures of the README anew (needs chromium and Spark)
	@$(SPARK)/bin/python demo/pictures.py --warren $(COMPILED)/bin/warren $(ARGS)

ui-types: $(VENV)/.ready  ## write the types of the web interface from the OpenAPI document
	@$(VENV)/bin/python tools/generate_ui_types.py

ui:  ## build the web interface, and say so if that cannot be done (needs Node 20.19 and npm)
	@$(or $(PYTHON),python3) tools/interface.py
	@mkdir -p build && touch build/.interface

dist: $(VENV)/.ready build/.interface  ## a wheel and a source distribution in dist/
	@rm -rf dist && $(VENV)/bin/python tools/distribution.py

clean:  ## remove the environments and everything built
	@rm -rf $(VENV) $(COMPILED) $(SPARK) $(SPARK)-* build dist src/*.egg-info src/warren/management/static ui/node_modules .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: $(wildcard requirements/*.txt) pyproject.toml setup.py tools/environment.py
	@$(ENVIRONMENT) interpreted $(VENV) build.txt runtime.txt guide.txt test.txt lint.txt
	@touch $@

# Made again by the next call, if it could not be made: what was missing may have come.
$(SPARK)/.ready: $(wildcard requirements/*.txt) pyproject.toml setup.py tools/environment.py
	@$(ENVIRONMENT) spark $(SPARK) build.txt runtime.txt guide.txt test.txt spark.txt
	@if grep -qx interpreted $(SPARK)/warren-build; then touch $@; fi

$(SPARK)-%/.ready: requirements/spark-%.txt $(SPARK)/.ready
	@$(ENVIRONMENT) in-front $(SPARK)-$* spark-$*.txt --of $(SPARK)
	@if grep -qx interpreted $(SPARK)-$*/warren-build; then touch $@; fi

# Without Node, the broker is built without it, and its page says so.
build/.interface: $(INTERFACE_INPUTS)
	@$(or $(PYTHON),python3) tools/interface.py --optional
	@mkdir -p build && touch $@

$(COMPILED)/.built: build/.interface $(wildcard $(INTERFACE)) $(SOURCES) $(BUILD_INPUTS) requirements/runtime.txt requirements/guide.txt
	@$(ENVIRONMENT) compiled $(COMPILED) build.txt runtime.txt guide.txt
	@touch $@

$(COMPILED)/.tests: $(COMPILED)/.built requirements/test.txt
	@$(ENVIRONMENT) packages $(COMPILED) test.txt
	@touch $@
