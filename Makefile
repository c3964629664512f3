# gauntlet: chaos and conformance for Kubernetes' workload controllers.
# `make help` lists every target.

SHELL       := /bin/sh
GO          ?= go
# The race detector needs a C compiler; without one the tests run all the same.
RACE        := $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)
REVISION    := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# No symbol table: stack traces and pprof do without, and a third is saved.
LDFLAGS     := -s -w -X main.revision=$(REVISION)
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
COUNT       ?= 1
# How many packages make test tests at once; the longest wait for most of their time.
PACKAGES    ?= 3
# How many specs of make test run at once, each with control planes of its own, and
# which of them.
SPECS       ?= 3
SPEC_LABELS ?= !slower
# How often a test or a scenario's spec is tried before it fails, or, in make chaos, a
# scenario before its verdict is unknown. One that passes then is reported as flaked
# or run again, and run directories stay.
ATTEMPTS    ?= 1
# It runs what failed again, as ATTEMPTS allow, but not what a data race failed.
GOTESTSUM   := $(GO) run gotest.tools/gotestsum@v1.13.0 --format=standard-quiet --hide-summary=skipped \
               --rerun-fails=$$(($(ATTEMPTS) - 1)) --rerun-fails-run-root-test --rerun-fails-abort-on-data-race
GINKGO      := $(GO) run github.com/onsi/ginkgo/v2/ginkgo
# ARGS goes to gauntlet: make chaos ARGS='burst --subject=upstream'
ARGS        ?=
# Where make e2e runs, how many of its scenarios at once, which of them and of its
# conformance specs, and the image of kind's nodes.
PROVIDERS   ?= kind
CLUSTERS    ?= 1
LABELS      ?= !slower
ROWS        ?=
comma       := ,
NODE_IMAGE  ?=
# How long make nightly begins runs, and its first seed; 0 takes a random one, but
# 1 for make soak.
DURATION    ?= 8h
SEED        ?= 0
# How many seeds make soak goes through.
SEEDS       ?= 20

# What make conformance runs against, where, in how many processes, how often, and
# with which profile of faults.
SUBJECTS    ?= ours,upstream
PROVIDER    ?= embedded
# Elsewhere a world is a cluster of containers, or the only one that there is.
PROCS       ?= $(if $(filter embedded,$(PROVIDER)),3,1)
REPEAT      ?= 1
PROFILE     ?=
FILTER      ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list every target
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: chaos
chaos: build upstream ## run the chaos scenarios against our controllers (ARGS='SCENARIO… --subject=upstream')
	bin/gauntlet run --attempts=$(ATTEMPTS) $(ARGS)

# Which scenarios make compare runs, and how many pairs of each.
SCENARIOS   ?= rollout endpoints everything
PAIRS       ?= 4

.PHONY: compare
compare: build upstream ## run scenarios on ours and upstream in turn and compare (SCENARIOS=… PAIRS=4 SEED=…)
	bin/gauntlet compare $(SCENARIOS) --pairs=$(PAIRS) --attempts=$(ATTEMPTS) --seed=$(SEED) $(ARGS)

.PHONY: e2e
e2e: build upstream ## run scenarios and conformance specs on kind clusters, against ours and upstream (LABELS='ours && !slower' ROWS=Endpoints)
	@# What a CI keeps goes to out/e2e and out/conformance. Each part runs whatever the
	@# others come to, and with make --jobs=2 beside another.
	@$(MAKE) --no-print-directory --keep-going e2e-clusters e2e-scenarios e2e-specs

.PHONY: e2e-clusters
e2e-clusters: build ## see that kind clusters come, and go however gauntlet ends
	@attempt=1; until $(GO) test -count=1 -timeout 10m ./harness/cluster/kind ./harness/standing; do \
		[ $$attempt -lt $(ATTEMPTS) ] || exit 1; \
		attempt=$$((attempt + 1)); echo "once more, attempt $$attempt of $(ATTEMPTS)"; \
	done

.PHONY: e2e-scenarios
e2e-scenarios: build upstream ## run the scenarios of make e2e only
	@mkdir -p out/e2e
	$(GINKGO) --procs=$(CLUSTERS) --flake-attempts=$(ATTEMPTS) --randomize-all --timeout=2h --silence-skips --fail-on-empty \
		--label-filter='$(LABELS)' --output-dir=out/e2e --junit-report=specs.xml ./suites/chaos -- \
		-provider=$(PROVIDERS) -node-image='$(NODE_IMAGE)' -reports=out/e2e

.PHONY: e2e-specs
e2e-specs: build upstream ## run the conformance specs of make e2e only
	@status=0; for provider in $(subst $(comma), ,$(PROVIDERS)); do \
		$(MAKE) --no-print-directory conformance PROVIDER=$$provider FILTER='$(ROWS)' || status=1; \
	done; exit $$status

.PHONY: conformance
conformance: build upstream ## run the conformance specs (SUBJECTS=ours,upstream PROVIDER=… PROFILE=steady REPEAT=20 FILTER='Endpoints')
	@mkdir -p out/conformance
	$(GINKGO) --procs=$(PROCS) --randomize-all --repeat=$$(($(REPEAT) - 1)) --timeout=12h --silence-skips --fail-on-empty \
		--label-filter='$(FILTER)' --output-dir=out/conformance --junit-report=specs.xml ./suites/conformance -- \
		-test.run=TestConformance -subject=$(SUBJECTS) -provider=$(PROVIDER) -node-image='$(NODE_IMAGE)' \
		-profile=$(PROFILE) -reports=out/conformance

.PHONY: conformance-broken
conformance-broken: build upstream ## see that broken controllers fail the conformance rows that they break (10 minutes)
	$(GO) test ./suites/conformance -count=1 -timeout 1h -parallel $(PROCS) -run '^TestBrokenSubjectsFailTheirRow$$' -v

.PHONY: conformance-table
conformance-table: conformance ## run them, and keep what they found as suites/conformance/TABLE.md
	cp out/conformance/TABLE.md suites/conformance/TABLE.md
	$(GO) test ./suites/conformance -run TestReadme -update

# Which mutants make mutants tries; none is all.
MUTANTS     ?=

.PHONY: mutants
mutants: build upstream ## break controllers on purpose and see which check catches each (MUTANTS='R1 D5')
	bin/gauntlet mutants $(MUTANTS) $(ARGS)

.PHONY: mutants-table
mutants-table: mutants ## try them, and keep where all stand as harness/mutant/TABLE.md
	cp out/mutants/TABLE.md out/mutants/outcomes.json harness/mutant/

.PHONY: nightly
nightly: build upstream ## hunt through seeds until time is up (DURATION=8h SEED=…)
	bin/gauntlet nightly --duration=$(DURATION) --seed=$(SEED) $(ARGS)

.PHONY: soak
soak: build upstream ## run what each of some seeds generates, on ours and upstream (SEEDS=100 SEED=…)
	@first=$(SEED); [ $$first -gt 0 ] || first=1; \
	set -x; bin/gauntlet sweep seeds --from=$$first --to=$$((first + $(SEEDS) - 1)) $(ARGS)

.PHONY: test
test: build upstream ## run every test, unit and integration (COUNT=20 repeats them)
	@# Ginkgo runs a suite once per process, so that -count does not do. What
	@# -short leaves out makes kind clusters, is conformance or takes minutes, and is
	@# left to make e2e, make conformance and make test-slow. The scenarios
	@# come last and without the race detector, which makes gauntlet slow enough to
	@# be what is tested: the packages' own tests have it. To link them without the
	@# tables of a debugger takes a quarter less. What takes longest begins first.
	@for i in $$(seq $(COUNT)); do \
		$(GOTESTSUM) --packages="$$($(GO) list ./harness/run ./... | grep -v /suites/chaos$$ | tr '\n' ' ')" -- \
			$(RACE) -p $(PACKAGES) -short -timeout 30m -count=1 -ldflags='-s -w' && \
		(cd harness/upstream && $(GO) test -count=1 .) && \
		$(GINKGO) --procs=$(SPECS) --flake-attempts=$(ATTEMPTS) --randomize-all --timeout=30m \
			--label-filter='$(SPEC_LABELS)' ./suites/chaos || exit 1; \
	done

.PHONY: rights
rights: ## see of the runs that make chaos left in out/ that ours is granted what it asks for, and no more
	$(GO) test -count=1 ./suites/chaos -run '^TestRightsInRuns$$' -args -runs=out

.PHONY: test-slow
test-slow: build upstream ## pass the tests that make test leaves out because they take minutes
	$(GO) test -timeout 30m -count=1 -run 'TestShrinkLive|TestEveryScenario|TestBroken(Controllers|Deployers)AreCaught' \
		./harness/cmd/gauntlet ./harness/generate ./harness/check
	$(GINKGO) --procs=2 --randomize-all --timeout=30m --fail-on-empty --label-filter=slower ./suites/chaos

.PHONY: build
build: ## build gauntlet, our controllers and what real pods run into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./harness/cmd/gauntlet ./harness/cmd/standin ./controllers/cmd/workload-controller-manager

.PHONY: image
image: build ## write the image of our controllers to bin/workload-controller-manager.tar
	bin/gauntlet image --output=bin/workload-controller-manager.tar \
		--label=org.opencontainers.image.revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown) \
		bin/workload-controller-manager

.PHONY: upstream
upstream: ## build etcd, Kubernetes and KWOK into the cache (about 7 minutes on 2 cores, once)
	@cd harness/upstream && $(GO) run .

.PHONY: engine
engine: ## bring up a container engine on a Debian machine that has none (root)
	@harness/nodeimage/engine

.PHONY: engine-down
engine-down: ## end the container engine that make engine started (root)
	@harness/nodeimage/engine stop

.PHONY: node-image
node-image: ## build a kind node image without a registry (root; minutes, once)
	@harness/nodeimage/build

.PHONY: bench
bench: build upstream ## run every benchmark; the ones on a control plane print ratios
	$(GO) test -timeout 30m -run '^$$' -bench . -benchtime 1x ./...

.PHONY: lint
lint: ## check formatting, vet, lint, import directions
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }
	@# Of this module golangci-lint has all that go vet looks for, in its govet.
	cd harness/upstream && $(GO) vet .
	cd harness/nodeimage && $(GO) vet ./...
	$(GOLANGCI) run --allow-serial-runners ./...

.PHONY: golden
golden: ## write the golden files and README's generated tables anew; review the diff
	$(GO) test ./reports -update
	$(GO) test ./harness/generate -run TestSameBytes -update
	$(GO) test ./faults/catalog -run TestReadme -update
	$(GO) test ./suites/conformance -run TestReadme -update

.PHONY: clean
clean: ## remove bin/ and out/ (the cache of upstream binaries stays)
	rm -rf bin out
