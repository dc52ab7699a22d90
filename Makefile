# Reeve's tasks. "make help" lists them.

GO       ?= go
TOOL     := $(GO) tool -modfile=go.tools.mod
# Where "make demo" puts the fleet repository, and more flags for it.
DEMO_DIR ?= build/demo
DEMO     ?=
# More flags for "make bench" and "make bench-conftest".
BENCH    ?=
CONFTEST ?=
# How long each fuzz test of "make nightly" runs.
FUZZTIME ?= 1m

# The packages whose coverage counts, and how much of them tests must run.
CORE     := requirements fleet catalog cluster scheduling disruption lifecycle decision resources
COVERAGE := 85
# The packages that start goroutines: tested with the race detector. Not spec: it
# evaluates in a child process whose memory is bounded, and the detector needs more.
RACE     := ledger gitrepo policy

present   = $(foreach p,$(1),$(if $(wildcard reconciler/$(p)/*.go),./reconciler/$(p)))
CORE_PKGS = $(call present,$(CORE))
RACE_PKGS = $(call present,$(RACE))
empty    :=
space    := $(empty) $(empty)
# All packages but those tested as core or with the race detector.
REST_PKGS = $$($(GO) list ./... | grep -vE '/reconciler/($(subst $(space),|,$(CORE) $(RACE)))$$')
# The race detector needs a C compiler; without one the same tests run plainly.
RACE_FLAG = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# A package may need that long: those that play whole stories take minutes, and
# several times as many on a busy machine. It ends what hangs, nothing else.
TIMEOUT  ?= -timeout 40m
SOURCES   = git ls-files --cached --others --exclude-standard
# What generates files from what is in this repository. The catalog's data are
# made from sources that are not, so they are not made again here.
GENERATORS = ./test/tools/... $(if $(wildcard schemas/*.go),./schemas/...)

# Tests must not see the configuration of whoever runs them.
TEST_ENV := GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=true

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the commands into bin/.
	$(GO) build -o bin/ ./cmd/...

.PHONY: demo
demo: build ## Show the whole story in a simulated cluster (DEMO_DIR=build/demo, DEMO="--replicas 5,30").
	bin/reeve demo --dir $(DEMO_DIR) $(DEMO)

.PHONY: test
test: test-core test-race test-rest test-crds coverage ## Run all tests and check the coverage of the core.

.PHONY: test-core
test-core: ## Test the core packages and measure their coverage.
	@mkdir -p build
	$(TEST_ENV) $(GO) test $(TIMEOUT) -coverprofile=build/cover.out $(CORE_PKGS)

.PHONY: test-race
test-race: ## Test the packages that start goroutines with the race detector.
	@$(if $(RACE_FLAG),:,echo "no C compiler: the race detector is off")
	$(if $(RACE_PKGS),$(TEST_ENV) $(GO) test $(TIMEOUT) $(RACE_FLAG) $(RACE_PKGS))

.PHONY: test-rest
test-rest: ## Test everything else.
	$(TEST_ENV) $(GO) test $(TIMEOUT) $(REST_PKGS)

.PHONY: test-corpus
test-corpus: ## Import the manifests of a corpus beside the repository and print counts (REEVE_SHARED=../shared).
	@test -f "$(REEVE_SHARED)/corpus/INDEX.tsv" || { echo "no corpus: set REEVE_SHARED to the directory that holds corpus/INDEX.tsv"; exit 2; }
	@mkdir -p build
	@code=0; $(TEST_ENV) REEVE_SHARED=$(abspath $(REEVE_SHARED)) $(GO) test -count=1 -run '^TestCorpus$$' -v ./reconciler/importer > build/corpus.txt 2>&1 || code=1; \
		grep -vE '^ *(=== |--- PASS)' build/corpus.txt; exit $$code

.PHONY: test-crds
test-crds: ## Hold the schemas against Karpenter's real CRDs; a module of its own (REEVE_MUTANTS=20000 for more).
	cd test/crds && $(TEST_ENV) $(GO) test $(TIMEOUT) ./...

.PHONY: coverage
coverage: ## Print the coverage of the core as test-core left it; fail below the bound.
	@awk -v least=$(COVERAGE) ' \
		FNR > 1 { split($$1, file, ":"); sub("/[^/]*$$", "", file[1]); \
			all[file[1]] += $$2; sum += $$2; \
			if ($$3 > 0) { run[file[1]] += $$2; hit += $$2 } } \
		END { for (p in all) printf "coverage %5.1f %%  %s\n", 100 * run[p] / all[p], p | "sort -k4"; \
			close("sort -k4"); share = sum ? 100 * hit / sum : 0; \
			printf "coverage %5.1f %%  of the core, at least %d %%\n", share, least; exit share < least }' build/cover.out

.PHONY: lint
lint: ## Check format and source: gofmt, vet, staticcheck, CUE and Rego format, the project's own rules, templates for CI.
	@unformatted=$$($(SOURCES) '*.go' | xargs gofmt -l); \
		if [ -n "$$unformatted" ]; then echo "not in gofmt's format, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	cd test/crds && $(GO) vet ./...
	$(GO) run ./test/tools/lint
	$(TOOL) staticcheck ./...
	$(TOOL) actionlint deploy/ci/github.yaml

.PHONY: fmt
fmt: ## Format Go, CUE and Rego files.
	$(SOURCES) '*.go' | xargs gofmt -w
	$(GO) run ./test/tools/lint -fix

.PHONY: bench
bench: ## Run the benchmarks, write build/bench.json, compare with the merge base (BENCH="-only policy").
	$(GO) run ./test/tools/bench $(BENCH)

.PHONY: bench-conftest
bench-conftest: ## Compare reeve check with conftest on the same rules, write build/bench-conftest.json (CONFTEST="-rounds 10").
	$(GO) run ./test/tools/versus $(CONFTEST)

.PHONY: generate
generate: ## Write everything that is generated: JSON schemas, references, CUE made from CRDs.
	$(GO) generate $(GENERATORS)

.PHONY: verify
verify: generate ## Generate again and fail if anything differs from what is committed.
	@changed=$$(git status --porcelain); \
		if [ -n "$$changed" ]; then \
			echo "The tree differs from the last commit. If you changed what is generated, commit the result:"; \
			echo "$$changed"; git --no-pager diff --stat; exit 1; \
		fi

.PHONY: nightly
nightly: planted ## Run what is too long for each change: planted bugs, deaths after every single write, every fuzz test for FUZZTIME, and the benchmarks.
	$(MAKE) test-crds REEVE_MUTANTS=20000
	$(TEST_ENV) REEVE_NIGHTLY=1 $(GO) test -timeout 90m -run MayDieAfterAnyWrite ./reconciler/pipeline
	@$(SOURCES) '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/:func / /' | while read -r file name; do \
		echo "$(GO) test -run '^$$' -fuzz ^$$name\$$ -fuzztime $(FUZZTIME) ./$$(dirname $$file)"; \
		$(TEST_ENV) $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "./$$(dirname $$file)" </dev/null || exit 1; \
	done
	$(MAKE) bench BENCH="-rounds 10 $(BENCH)"
	$(MAKE) bench-conftest CONFTEST="-rounds 10 $(CONFTEST)"

.PHONY: planted
planted: ## Plant known bugs one by one and fail unless the test named for each goes red.
	$(TEST_ENV) $(GO) run ./test/tools/planted

.PHONY: tidy-check
tidy-check: ## Fail if go.mod or go.sum are not tidy.
	$(GO) mod tidy -diff
	cd test/crds && $(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: clean
clean: ## Remove what was built.
	rm -rf bin build
