# gauntlet: chaos and conformance tests for Kubernetes workload controllers.
# `make help` lists the targets.

SHELL       := /bin/sh
GO          ?= go
# All targets and `gauntlet setup` compile with these settings, so they share compiled
# packages. Only the race detector needs cgo. Without debugging information, which the
# programs do not contain, the compiler needs an eighth less CPU time.
export CGO_ENABLED := 0
COMPILER    := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS     := $(filter-out $(COMPILER),$(shell $(GO) env GOFLAGS)) $(COMPILER)
# The Go compiler needs a sixth less CPU time, but up to 0.8 GB of memory, if it collects garbage less often.
BUILD       := GOGC=800 $(GO) build
# The race detector needs a C compiler. Without one, the tests run without it.
RACE        := $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)
REVISION    := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# Without a symbol table the binaries are a third smaller. Stack traces and pprof do not
# need it.
LDFLAGS     := -s -w -X main.revision=$(REVISION)
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# goreleaser needs a newer Go than this module; the go command downloads it.
GORELEASER  := GOTOOLCHAIN=auto $(GO) run github.com/goreleaser/goreleaser/v2@v2.18.2
GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0
# Helm needs newer modules than this module has, so it is not in go.mod.
HELM        := $(GO) run helm.sh/helm/v4/cmd/helm@v4.3.1
COUNT       ?= 1
# How many packages `make test` tests in parallel. The longest spend most time waiting.
PACKAGES    ?= 3
# How many specs of `make test` run in parallel, each on its own control planes, and
# their label filter. A scenario has its smallest tier as a label: quick, default or full.
SPECS       ?= 3
SPEC_LABELS ?= !slower && !full && !default
# How many times to try a failing test or spec and, in `make chaos`, a scenario with an
# unknown verdict. A later success is reported as a flake. Run directories stay.
ATTEMPTS    ?= 1
# It repeats failed tests up to ATTEMPTS times, except tests with a data race.
GOTESTSUM   := $(GO) run gotest.tools/gotestsum@v1.13.0 --format=standard-quiet --hide-summary=skipped \
               --rerun-fails=$$(($(ATTEMPTS) - 1)) --rerun-fails-run-root-test --rerun-fails-abort-on-data-race
GINKGO      := $(GO) run github.com/onsi/ginkgo/v2/ginkgo
# ARGS goes to gauntlet: make chaos ARGS='burst --subject=upstream'
ARGS        ?=
# `make e2e`: its providers, how many scenarios run in parallel, the label filter of the
# scenarios, the filter of the conformance specs, and the image of kind nodes.
PROVIDERS   ?= kind
CLUSTERS    ?= 1
LABELS      ?= !slower && !full
ROWS        ?=
comma       := ,
NODE_IMAGE  ?=
# How long `make nightly` starts new runs, and its first seed: 0 means a random seed, and 1
# for `make soak`.
DURATION    ?= 8h
SEED        ?= 0
# How many seeds `make soak` runs.
SEEDS       ?= 20

# `make conformance`: its subjects, provider, number of processes, number of passes, and
# profile of faults.
SUBJECTS    ?= ours,upstream
PROVIDER    ?= embedded
# On other providers each process would need a cluster of its own.
PROCS       ?= $(if $(filter embedded,$(PROVIDER)),3,1)
REPEAT      ?= 1
PROFILE     ?=
FILTER      ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list every target
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: chaos
chaos: build $(if $(TIER)$(ARGS),,chaos-virtual) upstream ## run the scenarios on our controllers (TIER=default, ARGS='SCENARIO… --subject=upstream')
	@# Without TIER and ARGS, all scenarios run in virtual time first, which takes one or two
	@# minutes, and then those of the tier quick with real processes.
	bin/gauntlet run --attempts=$(ATTEMPTS) $(if $(TIER)$(ARGS),$(if $(TIER),--tier=$(TIER)),--tier=quick) $(ARGS)

# Without upstream, gauntlet-virtual has less to compile. A complete program from an earlier build stays complete.
ONLY_OURS   = $(if $(findstring upstream,$(ARGS)),,$(shell test -e bin/gauntlet-virtual && \
	! $(GO) version -m bin/gauntlet-virtual | grep -q 'build	-tags=ours$$' || echo yes))

.PHONY: chaos-virtual
chaos-virtual: TAGS = $(if $(ONLY_OURS),-tags=ours)
chaos-virtual: build virtual-program ## run all scenarios in virtual time, on our controllers (ARGS=--subject=upstream)
	bin/gauntlet run --provider=virtual --tier=full --out=out/virtual $(ARGS)

# The tier of `make chaos`: quick, default or full; see `make chaos` if it is empty.
TIER        ?=

# The scenarios of `make compare`, and the number of pairs of each.
SCENARIOS   ?= rollout endpoints everything
PAIRS       ?= 4

.PHONY: compare
compare: build upstream ## run scenarios on ours and upstream and compare the results (SCENARIOS=… PAIRS=4 SEED=…)
	bin/gauntlet compare $(SCENARIOS) --pairs=$(PAIRS) --attempts=$(ATTEMPTS) --seed=$(SEED) $(ARGS)

.PHONY: e2e
e2e: build upstream ## run scenarios and conformance specs on kind clusters, on ours and upstream (LABELS='ours && !slower' ROWS=Endpoints)
	@# Reports go to out/e2e and out/conformance. A failing part does not stop the others.
	@# With make --jobs=2, two parts run in parallel.
	@$(MAKE) --no-print-directory --keep-going e2e-clusters e2e-scenarios e2e-specs

.PHONY: e2e-clusters
e2e-clusters: build virtual-program upstream ## test that kind clusters start, are removed however gauntlet ends, and run a fleet
	@attempt=1; until $(GO) test -p=1 -count=1 -timeout 20m ./harness/internal/cluster/kind ./harness/internal/standing ./harness/e2eframework ./harness/internal/fleet; do \
		[ $$attempt -lt $(ATTEMPTS) ] || exit 1; \
		attempt=$$((attempt + 1)); echo "attempt $$attempt of $(ATTEMPTS)"; \
	done

.PHONY: e2e-scenarios
e2e-scenarios: build upstream ## run only the scenarios of make e2e
	@mkdir -p out/e2e
	$(GINKGO) --procs=$(CLUSTERS) --flake-attempts=$(ATTEMPTS) --randomize-all --timeout=2h --silence-skips --fail-on-empty \
		--label-filter='$(LABELS)' --output-dir=out/e2e --junit-report=specs.xml ./suites/chaos -- \
		-provider=$(PROVIDERS) -node-image='$(NODE_IMAGE)' -reports=out/e2e

.PHONY: e2e-specs
e2e-specs: build upstream ## run only the conformance specs of make e2e
	@status=0; for provider in $(subst $(comma), ,$(PROVIDERS)); do \
		$(MAKE) --no-print-directory conformance PROVIDER=$$provider FILTER='$(ROWS)' || status=1; \
	done; exit $$status

# In virtual time, another test binary runs the specs. It contains the control plane and the
# subjects. Ginkgo's time limit is then virtual, and Go's is real.
CONFORMANCE := $(if $(filter virtual,$(PROVIDER)),./harness/virtual/suites/conformance,./suites/conformance)

.PHONY: conformance
conformance: $(if $(filter virtual,$(PROVIDER)),,build upstream) ## run the conformance specs (SUBJECTS=ours,upstream PROVIDER=… PROFILE=steady REPEAT=20 FILTER='Endpoints')
	@mkdir -p out/conformance
	$(GINKGO) --procs=$(PROCS) --randomize-all --repeat=$$(($(REPEAT) - 1)) --timeout=12h --silence-skips --fail-on-empty \
		--label-filter='$(FILTER)' --output-dir=out/conformance --junit-report=specs.xml $(CONFORMANCE) -- \
		-test.run=TestConformance $(if $(filter virtual,$(PROVIDER)),-test.timeout=20m) \
		-subject=$(SUBJECTS) -provider=$(PROVIDER) -node-image='$(NODE_IMAGE)' -profile=$(PROFILE) -reports=out/conformance

.PHONY: conformance-broken
conformance-broken: build upstream ## test that mutants fail the conformance rows that they violate (10 minutes)
	$(GO) test ./suites/conformance -count=1 -timeout 1h -parallel $(PROCS) -run '^TestBrokenSubjectsFailTheirRow$$' -v

.PHONY: conformance-table
conformance-table: conformance ## run the conformance specs and write suites/conformance/TABLE.md
	cp out/conformance/TABLE.md suites/conformance/TABLE.md
	$(GO) test ./suites/conformance -run TestDocumentation -update

# The mutants that `make mutants` runs; empty means all.
MUTANTS     ?=

.PHONY: mutants
mutants: build upstream ## test the checks with controllers that are broken on purpose (MUTANTS='R1 D5')
	bin/gauntlet mutants $(MUTANTS) $(ARGS)

.PHONY: mutants-table
mutants-table: mutants ## run the mutants and write harness/mutant/TABLE.md
	cp out/mutants/TABLE.md out/mutants/outcomes.json harness/mutant/

# How long `make mutants-matrix` starts new runs.
BUDGET      ?= 1h

.PHONY: mutants-matrix
mutants-matrix: build upstream ## measure which scenarios catch which mutants, and choose the tiers (BUDGET=1h, ARGS=--tier=quick)
	bin/gauntlet mutants matrix $(MUTANTS) --budget=$(BUDGET) $(ARGS)
	cp out/mutants/matrix.json harness/mutant/
	bin/gauntlet mutants tiers --write
	$(GO) test ./harness/mutant/library -run TestTableIsOfAll -update

.PHONY: nightly
nightly: build upstream ## run scenarios with one seed after another (DURATION=8h SEED=…)
	bin/gauntlet nightly --duration=$(DURATION) --seed=$(SEED) $(ARGS)

.PHONY: soak
soak: build upstream ## run the generated scenario of each seed, on ours and upstream (SEEDS=100 SEED=…)
	@first=$(SEED); [ $$first -gt 0 ] || first=1; \
	set -x; bin/gauntlet sweep seeds --from=$$first --to=$$((first + $(SEEDS) - 1)) $(ARGS)

.PHONY: test
test: build upstream ## run every test, unit and integration (COUNT=20 repeats them)
	@# A Ginkgo suite runs once per process, so -count has no effect on it. -short leaves
	@# out tests that create kind clusters, conformance specs, and tests that take
	@# minutes; see make e2e, make conformance and make test-slow. The scenarios run last
	@# and without the race detector, which would slow gauntlet down too much. Linking
	@# without debug information takes a quarter less time. The slowest package is first.
	@# Tests run without cgo, so the programs that they build use the same packages.
	@for i in $$(seq $(COUNT)); do \
		CGO_ENABLED=$(if $(RACE),1,0) $(GOTESTSUM) --packages="$$($(GO) list ./harness/run ./... | grep -v /suites/chaos$$ | tr '\n' ' ')" -- \
			$(RACE) -exec='env CGO_ENABLED=0' -p $(PACKAGES) -short -timeout 30m -count=1 -ldflags='-s -w' && \
		$(GINKGO) --procs=$(SPECS) --flake-attempts=$(ATTEMPTS) --randomize-all --timeout=30m \
			--label-filter='$(SPEC_LABELS)' ./suites/chaos || exit 1; \
	done

.PHONY: rbac
rbac: ## test, on the runs of make chaos, that ours has all the RBAC permissions that it needs, and no more
	$(GO) test -count=1 ./suites/chaos -run '^TestRBACInRuns$$' -args -runs=out/virtual

.PHONY: test-slow
test-slow: build upstream virtual ## run the tests that make test leaves out because they take minutes
	$(GO) test -timeout 30m -count=1 -run 'TestInstalledLive|TestShrinkLive|TestNotebookMutantsLive|TestEveryScenario|TestBroken(Controllers|Deployers)AreDetected' \
		./harness/cmd/gauntlet ./harness/internal/generate ./harness/check
	$(GO) test -timeout 30m -count=1 ./suites/docs
	cd harness/virtual && $(GO) test -timeout 30m -count=1 -run TestOneSeedOneHistory ./cmd/gauntlet-virtual
	cd harness/virtual && $(GO) test -timeout 30m -count=1 -overlay=../../bin/_runtime/overlay.json -run 'TestPausedKubelet|TestDeletedNode' ./controlplane
	$(GINKGO) --procs=2 --randomize-all --timeout=30m --fail-on-empty --label-filter=slower ./suites/chaos

.PHONY: test-virtual
test-virtual: ## run the tests of the control plane in virtual time, which is a module of its own
	@# -short leaves out what needs the patched runtime; see make test-slow. It also leaves
	@# out the conformance specs, which make conformance runs on both subjects.
	cd harness/virtual && $(GO) vet ./... && $(GO) test -vet=off -short -count=1 ./...
	@$(MAKE) --no-print-directory conformance PROVIDER=virtual

# The directory of the recordings of `make replay`, which `gauntlet run --audit-dir=` writes.
RECORDING   ?= testdata

.PHONY: replay
replay: ## send recorded requests to the API server in virtual time, and compare the answers (RECORDING=/absolute/directory)
	cd harness/virtual && $(GO) test -vet=off -timeout 3h -count=1 ./replay -run 'TestReplay$$' -args -recording=$(RECORDING)

.PHONY: virtual
virtual: ## build bin/gauntlet-virtual, which `gauntlet run --provider=virtual` needs
	@# The overlay patches the Go runtime, so that a seed has one history. The go command ignores names with _.
	$(GO) run ./harness/internal/runtimepatch/cmd/write $(CURDIR)/bin/_runtime
	@$(MAKE) --no-print-directory virtual-program

# virtual-program uses the patched runtime only if make virtual has run. Otherwise the build
# takes less time, because make upstream has compiled most of the packages.
.PHONY: virtual-program
virtual-program:
	@test ! -e bin/_runtime/overlay.json || $(GO) run ./harness/internal/runtimepatch/cmd/write $(CURDIR)/bin/_runtime
	cd harness/virtual && $(BUILD) $(TAGS) -ldflags '-s -w' \
		$(if $(wildcard bin/_runtime/overlay.json),-overlay=../../bin/_runtime/overlay.json) -o ../../bin/ ./cmd/gauntlet-virtual

.PHONY: test-objectstore
test-objectstore: ## run the tests of the object stores for fleets, which are a module of their own
	cd harness/objectstore && $(GO) vet ./... && $(GO) test -vet=off -count=1 ./...

# The values with which `make test-chart` renders the chart. UPDATE=1 writes the manifests.
CHART       := examples/fleet/chart
UPDATE      ?=

.PHONY: test-chart
test-chart: ## lint the Helm chart of fleets, and compare what it renders with the manifests that make test checks
	@set -e; for values in values ci/all-values ci/claim-values; do \
		$(HELM) lint --strict --quiet --values=$(CHART)/$$values.yaml $(CHART); \
		case $$values in \
		values) file=examples/fleet/nightly/nightly.yaml ;; \
		*) file=harness/internal/fleet/testdata/chart-$$(basename $${values%-values}).yaml ;; \
		esac; \
		rendered=$$($(HELM) template nightly $(CHART) --namespace=gauntlet --values=$(CHART)/$$values.yaml); \
		$(if $(UPDATE),echo "$$rendered" > $$file,echo "$$rendered" | diff -u $$file -; echo "$$file is what the chart renders"); \
	done

.PHONY: objectstore
objectstore: ## build bin/gauntlet-objectstore, which `gauntlet fleet run --store` needs
	@mkdir -p bin
	cd harness/objectstore && $(GO) build -ldflags '-s -w' -o ../../bin/ ./cmd/gauntlet-objectstore

.PHONY: build
build: ## build gauntlet, our controllers and the stand-in for pods into bin/
	$(BUILD) -ldflags '$(LDFLAGS)' -o bin/ ./harness/cmd/gauntlet ./harness/cmd/standin ./controllers/cmd/workload-controller-manager

.PHONY: image
image: build ## write the image of our controllers to bin/workload-controller-manager.tar
	bin/gauntlet image --output=bin/workload-controller-manager.tar \
		--label=org.opencontainers.image.revision=$$(git rev-parse HEAD 2>/dev/null || echo unknown) \
		bin/workload-controller-manager

.PHONY: upstream
upstream: ## build etcd, Kubernetes and KWOK into the cache (about 7 minutes on 2 cores, once)
	@$(GO) run ./harness/cmd/gauntlet setup

.PHONY: man
man: ## write the man pages to bin/man
	@mkdir -p bin/man
	$(GO) test -count=1 ./harness/cmd/gauntlet -run '^TestManPages$$' -args -man=$(CURDIR)/bin/man

.PHONY: completions
completions: build ## write the completions for bash, zsh and fish to bin/completions
	@mkdir -p bin/completions
	bin/gauntlet completion bash > bin/completions/gauntlet.bash
	bin/gauntlet completion zsh > bin/completions/_gauntlet
	bin/gauntlet completion fish > bin/completions/gauntlet.fish

.PHONY: release-check
release-check: ## check .goreleaser.yaml, and build the programs of a release for this machine into dist/
	$(GORELEASER) check
	$(GORELEASER) build --snapshot --single-target --clean

.PHONY: engine
engine: ## start a container engine on a Debian machine without one (root)
	@harness/nodeimage/engine

.PHONY: engine-down
engine-down: ## stop the container engine that make engine started (root)
	@harness/nodeimage/engine stop

.PHONY: node-image
node-image: ## build a kind node image without a registry (root; takes minutes, once)
	@harness/nodeimage/build

# The results of an earlier commit, with which make bench compares.
BASE        ?=
.PHONY: bench
bench: SHELL := /bin/bash
bench: build upstream ## run the benchmarks (hours) and compare them with the goals (PAIRS=8 BASE=earlier.txt, see docs/performance.md)
	@mkdir -p out/bench
	set -o pipefail; status=0; \
	$(GO) test -timeout 6h -run '^$$' -bench . -benchtime 1x ./... | tee out/bench/benchmarks.txt || status=$$?; \
	$(GO) run ./suites/bench/cmd/goals $(if $(BASE),-base=$(BASE)) out/bench/benchmarks.txt && exit $$status

.PHONY: lint
lint: ## check formatting, vet, lint, language and import directions
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }
	@# golangci-lint includes go vet for the main module.
	cd harness/nodeimage && $(GO) vet ./...
	cd examples/e2e-framework && $(GO) vet ./... && $(GO) vet -tags=fixed ./...
	cd examples/virtual && $(GO) vet ./...
	$(GOLANGCI) run --allow-serial-runners ./...
	cd harness/objectstore && $(GOLANGCI) run --allow-serial-runners --config=../../.golangci.yml ./...
	cd harness/virtual && $(GOLANGCI) run --allow-serial-runners --config=../../.golangci.yml ./...
	$(GO) test -count=1 ./suites/language

# Two modules are left out. harness/virtual links Kubernetes, and harness/nodeimage the version of
# CoreDNS that belongs to it. Both have the versions of the release that users run.
VULN_MODULES := . harness/objectstore examples/e2e-framework

.PHONY: vuln
vuln: ## look for known vulnerabilities in what gauntlet calls, with the newest Go (needs vuln.go.dev, or VULN_DB=file:///DIR)
	set -e; for dir in $(VULN_MODULES); do \
		echo "$$dir:"; (cd $$dir && $(GOVULNCHECK) $(if $(VULN_DB),-db=$(VULN_DB)) ./...); \
	done

.PHONY: golden
golden: ## write the golden files and the generated documentation; review the diff
	$(GO) test ./reports -update
	$(GO) test ./harness/internal/generate -run TestSameBytes -update
	$(GO) test ./faults/catalog -run TestReference -update
	$(GO) test ./harness/cluster/providers -run TestReference -update
	$(GO) test ./suites/conformance -run TestDocumentation -update
	$(GO) test ./harness/scenario/schema -update
	$(GO) test ./harness/check -run TestReference -update
	$(GO) test ./harness/mutant/library -run TestTableIsOfAll -update
	$(GO) test ./harness/cmd/gauntlet -run TestReference -update

.PHONY: clean
clean: ## remove bin/ and out/, but not the cache of upstream binaries
	rm -rf bin out
