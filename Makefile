# `make` lists the targets: each says what it does after its `##`.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

# The modules of go.work: . cmd/quorate compat/cron …
MODULES := $(shell sed -n 's,^	\.$$,.,p; s,^	\./,,p' go.work)

# The modules of the library, with its test kit, and of the command. `make test` tests these two; `make verify` tests the others.
MAIN  := . cmd/quorate
OTHER := $(filter-out $(MAIN),$(MODULES))

# The rooms of the pure part, from the lowest one up.
ROOMS := ./internal/protocol ./internal/lease ./internal/nodeset ./internal/change ./internal/repair ./internal/process

# How many schedules `make sim` runs, and the seed of the first.
SEEDS ?= 20000
SEED  ?= 1

# How many histories `make histories` plays.
HISTORIES ?= 10000

# How long `make fuzz` runs each fuzz target, or how often (10000x). At the end of a time Go reports its own deadline
# as a failure now and then, so `make verify` counts.
FUZZTIME ?= 1m

# How long each run of `make chaos` has faults. SEED is the seed of its faults, too.
FOR ?= 2m

# The race detector needs cgo, and that a C compiler. CI has one; elsewhere a missing one is said and done without.
RACE = $(if $(CI)$(filter 1,$(shell go env CGO_ENABLED)),-race)

# By default a process with the race detector waits for a second when it ends, and the tests of the command start many.
export GORACE := atexit_sleep_ms=20

# With the default, 100, the garbage collector of a process with few megabytes is always at work: it takes a third of the
# simulator's time. Benchmarks have the default, and so has the search of all states, which fills the memory.
unit others race servers small sim histories mutants quick: export GOGC := 400
states: export GOGC := 100

STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## This list
	@echo 'make TARGET'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'make sim takes SEEDS (how many schedules) and SEED (the first): make sim SEEDS=1 SEED=4711'
	@echo 'make fuzz takes FUZZTIME (for how long each target runs): make fuzz FUZZTIME=10m'
	@echo 'make chaos takes FOR (how long each run has faults) and SEED: make chaos FOR=30m SEED=7'

# `make test` and `make verify` run these stages one after the other, each of them whatever came of the others,
# and add up their Go tests. JSON is -json there. A stage can be run alone, too: make mutants.
JSON ?=
SUM  := go run ./internal/testsum

.PHONY: test
test: ## gofmt, go vet and the tests of the library, the command and the test kit, 5,000 schedules: about five minutes on two idle processors
	@$(SUM) redis format unit 'sim SEEDS=5000'

.PHONY: weight
weight: ## How many lines of Go and Lua a program imports with the five primitives, and how many rules there are
	@go list -deps -f '{{if not .Standard}}{{$$d := .Dir}}{{with .Module}}{{if .Main}}{{range $$.GoFiles}}{{$$d}}/{{.}} {{end}}{{range $$.EmbedFiles}}{{$$d}}/{{.}} {{end}}{{end}}{{end}}{{end}}' \
		./mutex ./rwmutex ./semaphore ./once ./leader | tr ' ' '\n' | grep . | sort -u | xargs cat | wc -l
	@grep -c '^	{"Rule' internal/testkit/mutant/rules.go

.PHONY: verify
verify: ## What takes longer: the other modules, staticcheck, the race detector, fleets, 5,000 more schedules, chaos, mutants, all states, fuzzing
	@$(SUM) redis lint others race servers small 'sim SEEDS=5000 SEED=5001' 'histories HISTORIES=5000' mutants states faults 'fuzz FUZZTIME=10000x'

# All packages of all modules. Their tests wait more than they compute, so several run at once: those of the runtime do
# little else than wait for the end of leases and guard times.
ALL    = $(MODULES:%=./%/...)
RUN    = QUORATE_REQUIRE_REDIS=1 go test -tags search,invariants $(JSON) -p 3 -parallel 6 -timeout 8m
GOTEST = $(RUN) -vet=off

# The packages whose tests start many servers or processes for minutes, or compile a user's programs.
SERVERS := ./internal/doccheck ./internal/operator ./internal/chaos ./internal/bench ./internal/bench/libraries ./internal/compat ./internal/release ./compat/goose ./compat/migrate

# The end-to-end tests that do so, too.
FLEETS := ^Test(CloseDeliversEarlierUnlocks|CounterFile|Share|CostWithManyPermitsInUse|CostOfManyWaiters|ThreeClusters|ThreeSentinelSets|ClusterOfThree|SentinelOfThree|ClusterMove|ExchangeUnderLoad|Burst|FleetConnectsAtOnce|ManyQuorums|ManyLeasesSurviveAReconnect|OnceFleet|LeaderFleet|LeaderTransfers|LeaderSuccession|OneOfManyTries|FleetMoves)$$

# Other stages run TestSchedules and TestCompatibility.
SKIP := -skip '$(FLEETS)|^TestSchedules$$|^TestCompatibility$$'

# The packages whose tests drive servers and commands, or share nothing between goroutines. The slowest come first: what is
# last would run alone for minutes.
PURE := ./internal/e2e ./cmd/quorate ./internal/sim $(ROOMS) ./internal/model ./internal/resp ./internal/trace ./internal/apicheck ./internal/testsum

# The packages for other libraries, the examples, the manifests, and what takes long to build with the race detector.
SATELLITES := ./compat/certmagic/... ./compat/cron/... ./compat/gocron/... ./compat/redsync/... ./examples/... ./fence/internal/sqlite ./otel/... ./deploy/...

# The others, of the modules of `make test` and of the rest.
LISTED  = $(PURE) $(SERVERS) $(SATELLITES) ./internal/sim/exhaustive ./internal/core ./mutex
SHARED  = ./internal/core ./mutex $$(go list $(MAIN:%=./%/...) | grep -vxFf <(go list $(LISTED)))
SHARING = $$(go list $(OTHER:%=./%/...) | grep -vxFf <(go list $(LISTED)))

# In CI `make test` has the race detector, too, so that `make verify` finds in go's cache what its tests said.
# Vetting beside the tests takes no time of its own: the tests leave the processors idle.
.PHONY: unit
unit: ## go vet and the tests of the library, the command and the test kit, but for those of `make servers` and `make states`
ifdef CI
	@failed=0; $(RUN) -vet=all $(SKIP) $(PURE) || failed=1; $(RUN) -vet=all $(SKIP) $(RACE) $(SHARED) || failed=1; exit $$failed
else
	@$(RUN) -vet=all $(SKIP) $(PURE) $(SHARED)
endif

.PHONY: others
others: ## The tests of the packages for other libraries, of the examples and of the manifests
	@$(GOTEST) $(SATELLITES)

.PHONY: race
race: ## The tests in which goroutines share, with the race detector; the acceptance suite on redis-server
	@if [ -z '$(RACE)' ]; then echo 'The race detector needs a C compiler.'; exit 1; fi
	@failed=0; \
	$(RUN) -vet=all $(SKIP) $(RACE) $(SHARED) || failed=1; \
	$(GOTEST) $(SKIP) $(RACE) $(SHARING) || failed=1; \
	QUORATE_COMPAT=1 $(GOTEST) -count=1 -run '^TestCompatibility$$' ./internal/e2e || failed=1; \
	exit $$failed

.PHONY: servers
servers: ## The tests with fleets of servers and processes, and of a release
	@failed=0; \
	$(RUN) -vet=all $(SERVERS) || failed=1; \
	$(GOTEST) -run '$(FLEETS)' ./internal/e2e || failed=1; \
	exit $$failed

# A processor with 64 bits runs programs for one with 32, and they need no C compiler.
.PHONY: small
small: ## The tests of the pure packages and of the scripts on a 32-bit processor: GOARCH=386
	@if [ "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" != linux/amd64 ]; then echo 'GOARCH=386 runs on linux/amd64 only.'; exit 0; fi; \
	GOARCH=386 CGO_ENABLED=0 $(GOTEST) $(ROOMS) ./internal/model ./internal/localqueue ./internal/resp ./internal/script

.PHONY: histories
histories: ## Random histories of a set of nodes
	@$(GOTEST) -count=1 -timeout 15m ./internal/nodeset -run Histories -seeds=$(HISTORIES)

.PHONY: mutants
mutants: ## The library without one of its rules at a time: a test must see it
	@overlay=$$(go run ./internal/testkit/mutant/overlay); $(GOTEST) -count=1 -tags mutants,search -overlay=$$overlay \
		-run 'Mutant|TestAimsAreFair|TestShortGuard|TestVotesAlone' -skip TestTracesUnderEachMutant \
		./internal/sim/... ./semaphore ./once ./internal/core $(ROOMS)

# The five worlds that take longer than all others together: `make states HUGE=` searches them, too.
HUGE := ^TestExhaustive$$/^(prompt,_cut_off,_restart|messages_take_any_time,_a_connection_is_lost|prompt,_one_given_up|fast_node,_lease_of_3|prompt,_a_node_has_no_room)$$

.PHONY: states
states: ## The search of all states, the large worlds too: 2 GiB
	@$(RUN) -vet=all -count=1 -timeout 30m ./internal/sim/exhaustive -exhaustive.full $(if $(HUGE),-skip '$(HUGE)')

.PHONY: faults
faults: ## A quarter of a minute of chaos on five servers; TestChaos has three
	@go run -tags invariants ./internal/chaos -nodes 5 -tracks servers,data,network,clients,sleep,drift -for 12s -seed $(SEED)

.PHONY: soak
soak: ## What a night finds: a million schedules, all states, an hour of chaos
	@$(SUM) redis 'sim SEEDS=1000000' 'histories HISTORIES=300000' 'states HUGE=' 'chaos FOR=30m' 'fuzz FUZZTIME=5m'

.PHONY: quick
quick: ## What needs no server: gofmt, go vet, the tests of the pure packages, the traces, 2,000 schedules and the links of the documents (30 seconds)
	@$(MAKE) format
	@go vet -tags search ./...
	@go test -vet=off -tags search,invariants ./internal/model ./internal/localqueue $(ROOMS) ./internal/resp ./internal/testkit/judge
	@go test -vet=off -tags search,invariants -count=1 ./internal/sim -run 'TestSchedules|TestTraces' -seeds=2000
	@go test -vet=off -tags search,invariants ./internal/doccheck -run 'TestLinks|TestRuleTable|TestNamedTestsExist'

# GOWORK=off shows that each module builds on its own. What users install requires a released version of
# the library, which may not be published yet: a copy of the module's go.mod takes the library from here.
INSTALLED := $(filter-out . internal/%,$(MODULES))
ALONE = alone() { \
	cp $$1/go.mod $$t/alone.mod; cp $$1/go.sum $$t/alone.sum; \
	go mod edit -replace=github.com/quorate/quorate=$(CURDIR) $$t/alone.mod; \
	}; t=$$(mktemp -d); trap 'rm -rf "$$t"' EXIT

.PHONY: format
format: ## gofmt
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then printf 'gofmt -w these files:\n%s\n' "$$unformatted"; exit 1; fi

# deploy is one test over the types of Kubernetes, and fence/internal/sqlite one over SQLite in Go. staticcheck would take
# minutes to read them.
.PHONY: lint
lint: ## go vet of the modules that make test leaves out; staticcheck; each module builds on its own
	@failed=0; go vet -tags search $(OTHER:%=./%/...) || failed=1; \
	echo '== staticcheck'; $(STATICCHECK) -tags search $(filter-out ./deploy/... ./fence/...,$(ALL)) ./fence ./fence/internal/suite || failed=1; \
	$(ALONE); \
	for m in $(filter-out .,$(MODULES)); do \
		echo "== $$m alone"; alone $$m; \
		(cd $$m && GOWORK=off go build -modfile=$$t/alone.mod -o /dev/null ./...) || failed=1; \
	done; exit $$failed

.PHONY: sim
sim: ## Random schedules in the simulator (SEEDS=20000 SEED=1)
	@$(GOTEST) $(if $(filter 1,$(SEEDS)),-v) ./internal/sim -count=1 -timeout 0 -run TestSchedules -seeds=$(SEEDS) -seed=$(SEED)

# A fuzz target runs for as long as it is allowed to, so `make unit` plays its corpus only. An input that
# fails is written below testdata/fuzz of its package, and `go test` plays it from then on.
.PHONY: fuzz
fuzz: ## Each fuzz target, one after the other (FUZZTIME=1m); for nightly runs
	@failed=0; t=$$(mktemp -d); trap 'rm -rf "$$t"' EXIT; \
	for d in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		p=$$(go list $$d); go test -c -fuzz . -o $$t/test $$d || { failed=1; continue; }; \
		for f in $$($$t/test -test.list '^Fuzz'); do \
			echo "== $$d: $$f for $(FUZZTIME)"; \
			(cd $$d && $(if $(JSON),go tool test2json -p $$p) $$t/test $(if $(JSON),-test.v=test2json) -test.run '^$$' -test.fuzz "^$$f\$$" \
				-test.fuzztime $(FUZZTIME) -test.fuzzcachedir "$$(go env GOCACHE)/fuzz/$$p") || failed=1; \
		done; \
	done; exit $$failed

# Which functions one call runs: lock or unlock.
CALL ?= lock

.PHONY: walk
walk: redis ## Which functions and files a Lock of a free name runs, and how many (CALL=lock, or unlock)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/cover" && \
		go build -cover -covermode=atomic -coverpkg=./... -o "$$dir/walk" ./internal/testkit/walk && \
		GOCOVERDIR="$$dir" "$$dir/walk" $(CALL) "$$dir/cover" && \
		go tool covdata func -i="$$dir/cover" | grep -v -e '\s0.0%$$' -e ^total -e /testkit/ > "$$dir/run" && cat "$$dir/run" && \
		echo "$$(wc -l < "$$dir/run") functions, $$(cut -d: -f1 "$$dir/run" | sort -u | wc -l) files"

.PHONY: bench
bench: redis ## The benchmarks of internal/bench: results.json, docs/plots and the tables of docs/internals/performance.md (15 minutes)
	cd internal/bench && go run . -json results.json -plots ../../docs/plots -md ../../docs/internals/performance.md

.PHONY: chaos
chaos: redis ## Faults on real servers and processes, judged from outside: docs/internals/chaos.md (SEED=1 FOR=2m)
	go run -tags invariants ./internal/chaos -nodes 3,5 -control none,unfenced,redsync,rival -for $(FOR) -seed $(SEED) \
		$(if $(SIMULATED),-simulated $(SIMULATED)) -report docs/internals/chaos.md
	@echo '== the library without one of its rules: the checkers must see it'
	go run -tags mutants -overlay=$$(go run ./internal/testkit/mutant/overlay) ./internal/chaos -control votes-only,no-exact,no-both -for $(FOR) -seed $(SEED)

# SERVER is one binary or several, with blanks between them. MD is the document whose table is replaced.
.PHONY: compat
compat: ## The acceptance suite on given servers: make compat SERVER=/usr/bin/redis-server
	@go run ./internal/compat $(if $(MD),-md $(MD)) $(SERVER)

# Chromium is no part of `make test`: in CI a test that lacks what it needs fails.
.PHONY: page
page: redis ## The page of quorate ui in headless Chromium; with PICTURES=docs/pictures it takes new ones
	QUORATE_REQUIRE_REDIS=1 QUORATE_PICTURES=$(abspath $(PICTURES)) go test -count=1 -tags browser -run '^Test(PageInABrowser|Pictures)$$' ./cmd/quorate

# Nor is Prometheus.
.PHONY: alerts
alerts: redis ## The alert rules and the queries of the dashboard in a real Prometheus
	cd examples && QUORATE_REQUIRE_REDIS=1 go test -count=1 -tags prometheus -run '^TestProm' ./metrics

.PHONY: cover
cover: redis ## Test coverage of the library: coverage.out, coverage.html and the total
	QUORATE_REQUIRE_REDIS=1 go test -timeout 8m -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	@go tool cover -func=coverage.out | tail -n 1

.PHONY: tidy
tidy: ## go mod tidy in each module
	@for m in $(filter-out $(INSTALLED),$(MODULES)); do (cd $$m && GOWORK=off go mod tidy) || exit 1; done
	@$(ALONE); for m in $(INSTALLED); do alone $$m; \
		(cd $$m && GOWORK=off go mod tidy -modfile=$$t/alone.mod) || exit 1; \
		go mod edit -dropreplace=github.com/quorate/quorate $$t/alone.mod; \
		cp $$t/alone.mod $$m/go.mod; cp $$t/alone.sum $$m/go.sum; \
	done

.PHONY: release
release: ## Rehearse a release: make release VERSION=v0.1.0; with DO=1 it tests, commits and tags
	@if [ -z '$(VERSION)' ]; then echo 'which version? make release VERSION=v0.1.0' >&2; exit 1; fi
	@$(if $(DO),$(MAKE) test verify)
	@go run ./internal/release -version $(VERSION) $(if $(DO),-do)

.PHONY: redis
redis: ## Install redis-server and a C compiler with apt-get where missing; without apt-get, say how
	@missing=; command -v redis-server >/dev/null || missing=redis-server; \
	command -v cc >/dev/null || missing="$${missing:+$$missing }gcc libc6-dev"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then sudo=none; \
	elif [ "$$(id -u)" = 0 ]; then sudo=; \
	elif sudo -n true 2>/dev/null; then sudo='sudo -n'; \
	else sudo=none; fi; \
	if [ "$$sudo" = none ]; then \
		echo "missing, and cannot be installed from here: $$missing. Install it with"; \
		echo "  Debian, Ubuntu   sudo apt-get install $$missing"; \
		echo '  Fedora           sudo dnf install redis gcc'; \
		echo '  macOS            brew install redis'; \
		exit 1; \
	fi >&2; \
	echo "missing: $$missing; installing it with apt-get"; \
	$$sudo apt-get update -q; \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing
