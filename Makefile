# Needs Go, make and npm (for PostgreSQL's binaries). `make help` lists what there is to do.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Hidden directories hold tools and data, testdata holds fixtures: neither holds a module of ours.
MODULES := $(patsubst %/,%,$(sort $(dir $(shell find . \( -name '.?*' -o -name testdata -o -name node_modules \) -prune -o -name go.mod -print))))
# The tests that only `make test-all` runs: those in files with the build tag e2e. They are run by name, not to run the rest of the package again.
E2E := $(shell grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata '^//go:build .*\be2e\b' .)
E2E_TESTS = $(shell sed -nE 's/^func (Test[A-Za-z0-9_]*).*/\1/p' $(E2E) | paste -sd'|')

# The packages whose tests need a database, but not those that test how a server is found and run.
DATABASE := $(sort $(dir $(shell grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata --exclude-dir=e2e '"caskeleton.dev/adapter/postgres/(pgtest|migrations/migrationstest)"|^package pgtest' .)))
POSTGRES_VERSIONS ?= 15 16 17 18

BIN := $(CURDIR)/.bin
GOLANGCI := $(BIN)/golangci-lint-v2.15.0
GOVULNCHECK := $(BIN)/govulncheck-v1.9.0

# The race detector needs a C compiler. Without one the tests run all the same, and say so.
RACE := $(if $(shell command -v "$$(go env CC)"),-race)
# -count=1 runs every test anew: the end-to-end tests build and run a binary, and all of them a server, that Go's test cache does not know.
TESTFLAGS ?= $(RACE) -count=1 -timeout 10m
FUZZTIME ?= 10s

# in-each runs a command in every module, all of them even where one fails, and names those that did.
in-each = failed=; for m in $(MODULES); do echo "== $$m: $(1)"; (cd $$m && $(1)) || failed="$$failed $$m"; done; \
	[ -z "$$failed" ] || { echo "failed in:$$failed" >&2; exit 1; }

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' Makefile

.PHONY: run stop orders
run: orders ## start the reference service on an embedded PostgreSQL
	@exec $(BIN)/orders up

stop: $(if $(wildcard .bin/orders),,orders) ## stop the embedded PostgreSQL that outlived a killed service
	@exec $(BIN)/orders stop

orders:
	@cd examples/orders && go build -o $(BIN)/orders ./cmd/orders

.PHONY: test test-all test-matrix stop-tests bench fuzz
test: ## run all tests of all modules, with the race detector where there is a C compiler
	@$(if $(RACE),,echo "no C compiler: the race detector is off" >&2)
	@go run ./internal/testsum $(MODULES) -- $(TESTFLAGS) ./...

test-all: ## run the extra suites: end-to-end tests with real processes
ifeq ($(E2E),)
	@echo "no end-to-end tests yet"
else
	@go run ./internal/testsum $(sort $(dir $(E2E))) -- $(TESTFLAGS) -tags e2e -run '^($(E2E_TESTS))$$' .
endif

test-matrix: ## run the database suites on each PostgreSQL of POSTGRES_VERSIONS
	@failed=; for v in $(POSTGRES_VERSIONS); do echo "== PostgreSQL $$v"; \
		PGTEST_VERSION=$$v go run ./internal/testsum $(DATABASE) -- $(TESTFLAGS) . || failed="$$failed $$v"; done; \
	[ -z "$$failed" ] || { echo "failed on PostgreSQL:$$failed" >&2; exit 1; }

stop-tests: ## stop the PostgreSQL that the tests leave running for the next ones
	@go run ./internal/stoptests

bench: ## measure the kit beside its floors and write docs/benchmarks.md
	@cd bench && go run . >$(CURDIR)/docs/benchmarks.md.new
	@mv docs/benchmarks.md.new docs/benchmarks.md && cat docs/benchmarks.md

fuzz: ## fuzz each target for FUZZTIME (10s)
	@targets=$$(grep -roE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+' . || true); \
	[ -n "$$targets" ] || { echo "no fuzz targets yet"; exit 0; }; \
	while IFS=: read -r file func; do func=$${func#func }; echo "== $$file: $$func"; \
		(cd "$$(dirname "$$file")" && go test -run '^$$' -fuzz "^$$func\$$" -fuzztime $(FUZZTIME) . </dev/null); done <<<"$$targets"

.PHONY: check generate verify lint vet vuln
check: lint verify vet test ## everything that a change must pass

generate: ## write what is generated from registry/
	@go run ./registry/cmd/generate

verify: ## fail where a generated file, a go.mod or a go.sum is not what it should be
	@go run ./registry/cmd/generate -verify
	@$(call in-each,go mod tidy -diff)

lint: $(GOLANGCI) ## run golangci-lint, which also checks the format
	@$(call in-each,$(GOLANGCI) run ./...)

vet: ## run go vet
	@$(call in-each,go vet -tags e2e ./...)

vuln: $(GOVULNCHECK) ## look for known vulnerabilities; says "vuln: not run" where their database cannot be reached
	@.ci/vuln $(GOVULNCHECK) $(MODULES)

# A tool's file carries its version, so that a new pin builds it again.
$(BIN)/%:
	@echo "building $(@F)"
	@mkdir -p $(BIN)/build.$(@F) && GOBIN=$(BIN)/build.$(@F) GOFLAGS= go install $(tool)
	@mv $(BIN)/build.$(@F)/* $@ && rmdir $(BIN)/build.$(@F)

$(GOLANGCI): tool = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(patsubst golangci-lint-%,%,$(@F))
$(GOVULNCHECK): tool = golang.org/x/vuln/cmd/govulncheck@$(patsubst govulncheck-%,%,$(@F))
