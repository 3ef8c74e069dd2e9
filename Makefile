# Everything here needs Go and nothing else. `make help` lists the targets.

GO ?= go
# Every Go package but the guests, which have no tests of their own outside a sandbox.
PACKAGES = ./...
# Set to -v to see the names of packages while they are compiled, which takes minutes the first time.
VERBOSE ?=
# Tests need neither debugging information nor C, and linking them without takes a third of the time. "make check" vets.
# The commands that tests build have paths trimmed too: otherwise all of Go's library would be compiled once more.
TESTFLAGS = -trimpath -ldflags=-s -vet=off
# Two packages more than there are processors are tested at once, since many tests wait.
# They take memory, and save a tenth of the time, if garbage is collected less often than by default.
TESTGOGC = 400
# Guests with a dependency that nothing else needs, each in a Go module of its own.
PLUGINS = internal/benchmark/guests/go/plugin internal/plugins/go
# Tests against OpenAI's own client, which nothing else depends on.
OPENAI = examples/agent/openaitest
# Interpreters of Python and JavaScript, which nothing else depends on.
INTERPRETERS = internal/interpreters
# Third-party programs, and the code that fetches and builds them.
PROGRAMS = internal/thirdparty
# Generators of clients from the OpenAPI document, which nothing else depends on.
GENERATORS = server/rest/testdata/clients
# The Go modules beside the one at the root.
MODULES = internal/lint $(PLUGINS) $(OPENAI) $(GENERATORS)/go $(INTERPRETERS) $(PROGRAMS) $(PROGRAMS)/go

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile bin/caisson
	$(GO) build $(VERBOSE) -trimpath -o bin/caisson ./cmd/caisson

.PHONY: tools
tools: ## compile the first-party tools and the examples' guests to WebAssembly
	$(GO) run $(VERBOSE) -trimpath ./internal/guests/compile $(VERBOSE)

.PHONY: demo
demo: VERBOSE = -v
demo: build tools ## build Caisson and the tools, and run an assistant's turn: five useful calls, three contained attacks
	$(GO) run $(VERBOSE) -trimpath ./examples/turn

.PHONY: deps
deps: ## download every module that the other targets need
	@for module in . $(MODULES); do echo "cd $$module && go mod download" && (cd $$module && $(GO) mod download) || exit 1; done

.PHONY: test
test: ## run the tests; packages that take long begin, since no processor idles then at the end
	CGO_ENABLED=0 GOGC=$(TESTGOGC) $(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) + 2)) -parallel 4 $(TESTFLAGS) ./wasm-tools ./runtime $(PACKAGES)

.PHONY: manual
manual: ## write the tables of docs/manifest.md, and docs/schema, from the schemas of manifests and policies
	$(GO) test ./internal/manual -run '^TestPageIsUpToDate$$' -update

# The files with tests of which "make test" runs a sample or nothing; see internal/testsize.
SAMPLED = $$(grep -rlE --include='*_test.go' 'testsize\.|runPrograms\(|go:build slow' .)

.PHONY: slow
slow: ## run the tests of which "make test" runs a sample or nothing, a quarter of most and all of some; the package that takes longest begins
	files=$(SAMPLED) && tests=$$(grep -ohE '^func Test[A-Za-z0-9_]*' $$files | cut -c6- | sort -u | paste -sd '|') && \
	$(GO) test $(TESTFLAGS) -tags slow -run "^($$tests)\$$" ./runtime/internal/engine $$(dirname $$files | sort -ur)

# Where goroutines meet. Nightly runs have the race detector look at everything: at masking, at compiling, and at what
# compares or counts what guests compute, which are long computations of one goroutine, at what measures the memory or the time of
# long bodies and answers, and at the command line, whose processes it slows down most.
COMPUTATIONS = ^TestAttack(UnreadAnswers|UnreadAnswersOfAToken|LongQuestions|OpenRequests|LongRecords|SubmissionsInTheWay|HeldAnswers|AnswersThatTakeLongToMask|FollowersOfForgottenRuns|SessionsThatAreAskedFor|RunsOfManyCalls|LongRequestLines|LongLogs|BatchesWithoutRoom|TextsThatHoldTheirBodies|CompiledLoops|Limits|KeyUpdatesDelayTheStop|FunctionsInThisProcess|ManyRegisters|SlowJoins|CostlyFunctions)$$|^Test(OnlyTrustedModulesMayBeComplex|TrustedModules|CompilingJoinsGrowsFaster|PassesVersion|ModulesCountWhatIsDecoded|FramesOfCode|ManyImportsTakeNoTime)$$|^TestMask|^TestRandom(Modules|Instructions)|^TestMutants|Behaves?TheSame|IsExact$$|^Test(Endless|Bounded)Programs|^TestProgramsStay|^TestAttackUnits|^TestAttackRecursionWith
CONCURRENT = ./runtime/internal/engine ./runtime . ./executor ./hostfuncs/... ./internal/guestfiles ./registry/... ./sdk/... ./server/... \
	$$($(GO) list ./executor/internal/... ./runtime/... | grep -vE '/repair|/internal/wasm')

.PHONY: race
race: ## run the tests of what is concurrent under the race detector
	$(GO) test -race -skip '$(COMPUTATIONS)' $(CONCURRENT)

# Of how many mistakes and guards make faults makes and takes out the first. Nightly runs do all.
ONE_IN ?= 20

.PHONY: faults
faults: ## make mistakes in what meters and rewrites guests, and take guards out, and see that each is noticed, and that no guest that gets away outlives the command
	$(GO) test -count=1 -tags faults,slow -run '^TestFaults' -v ./runtime/internal/wasm/metered -one-fault-in $(ONE_IN)
	$(GO) test -count=1 -tags faults,slow -run '^TestRunaway$$' -v ./cmd/caisson
	$(GO) test -count=1 -tags faults,slow -run '^TestFaultsOf$(if $(filter 1,$(ONE_IN)),(Passes|Tests),Tests)$$' ./runtime/internal/engine
	$(GO) test -count=1 -tags faults,slow -run '^TestFaultsOfGuards$$' -timeout 3h . -one-guard-in $(ONE_IN)

# How long "make load" holds its connections.
LOADTIME ?= 5m

.PHONY: load
load: ## hold 64 connections to "caisson serve" for LOADTIME, and print latencies and processor time beside net/http and the MCP SDK's server
	$(GO) vet -tags load ./cmd/caisson
	$(GO) test -count=1 -timeout 1h -tags load -run '^TestServeLoad$$' -v ./cmd/caisson -load $(LOADTIME)

.PHONY: knowledge
knowledge: ## search 200 MB of documents with the limits of the standard profile, and print times beside ripgrep's; needs ripgrep
	@command -v rg >/dev/null || { echo "ripgrep is missing: Debian: apt-get install ripgrep"; exit 1; }
	$(GO) vet -tags knowledge ./wasm-tools
	$(GO) test -count=1 -tags knowledge $(TESTFLAGS) -run '^TestKnowledgeOf200MB$$' -v ./wasm-tools

.PHONY: openai
openai: ## test what is written for OpenAI's APIs against OpenAI's own client
	cd $(OPENAI) && $(GO) vet . && $(GO) test .

.PHONY: http
http: ## follow the README and examples/http with curl and Python
	@for program in curl python3; do command -v $$program >/dev/null || { echo "$$program is missing: Debian: apt-get install $$program"; exit 1; }; done
	$(GO) vet -tags http . ./examples/http
	$(GO) test -count=1 -tags http $(TESTFLAGS) ./examples/http
	$(GO) test -count=1 -tags http $(TESTFLAGS) -run '^TestServerOfTheREADME$$' .

# The providers' own clients for Python, which nothing else depends on.
CLIENTS = internal/clients

# What fails with advice if a program is missing.
HASVENV = python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' || \
	{ echo 'Python 3.11 or later with venv is missing: Debian: apt-get install python3 python3-venv'; exit 1; }
# What installs the packages of a file that lists all that are needed, by their hashes, and checks that none is missing.
# pip would look for others first where a newer version has come out since.
PIPINSTALL = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-deps -r $(2) && \
	$(1)/bin/python -m pip check --disable-pip-version-check
HASNPM = command -v npm >/dev/null || { echo 'npm is missing: it comes with Node.js, Debian: apt-get install npm'; exit 1; }

.PHONY: clients
clients: bin/clients/installed ## check what the dialects write and read against the types of the providers' Python clients; needs Python
	$(GO) vet -tags clients ./$(CLIENTS)
	$(GO) test -count=1 -tags clients ./$(CLIENTS) -python $(CURDIR)/bin/clients/bin/python

bin/clients/installed: $(CLIENTS)/requirements.txt
	@$(HASVENV)
	rm -rf bin/clients && python3 -m venv bin/clients
	$(call PIPINSTALL,bin/clients,$(CLIENTS)/requirements.txt)
	touch $@

.PHONY: openapi-clients
openapi-clients: bin/openapi/python/installed bin/openapi/typescript/installed bin/openapi/oapi-codegen ## generate clients in Python, TypeScript and Go from the OpenAPI document and call the server with them, and compare it with what the server checks; needs Python and npm
	$(GO) vet -tags openapi ./server/rest
	$(GO) test -count=1 -tags openapi $(TESTFLAGS) -run '^TestClients' ./server/rest -generators $(CURDIR)/bin/openapi

bin/openapi/python/installed: $(GENERATORS)/python/requirements.txt
	@$(HASVENV)
	rm -rf bin/openapi/python && python3 -m venv bin/openapi/python
	$(call PIPINSTALL,bin/openapi/python,$<)
	touch $@

bin/openapi/typescript/installed: $(GENERATORS)/typescript/package.json $(GENERATORS)/typescript/package-lock.json
	@$(HASNPM)
	rm -rf bin/openapi/typescript && mkdir -p bin/openapi/typescript && cp $^ bin/openapi/typescript
	cd bin/openapi/typescript && npm ci --silent --ignore-scripts --no-audit --no-fund
	touch $@

bin/openapi/oapi-codegen: $(GENERATORS)/go/go.mod $(GENERATORS)/go/go.sum
	cd $(GENERATORS)/go && $(GO) build -o $(CURDIR)/$@ github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

.PHONY: shells
shells: ## complete commands in real shells; needs bash, zsh and fish
	@for shell in bash zsh fish; do \
		command -v $$shell >/dev/null || { echo "$$shell is missing: Debian: apt-get install $$shell"; exit 1; }; \
	done
	$(GO) test -count=1 -tags shells $(TESTFLAGS) -run '^TestShells$$' ./cmd/caisson

# Clients of the Model Context Protocol and its conformance suite, which nothing else depends on.
MCP = server/mcp/testdata/clients

.PHONY: mcp
mcp: bin/mcp/installed bin/clients/installed ## run the conformance suite of the Model Context Protocol, its inspector and its official clients; needs npm and Python
	$(GO) vet -tags mcp ./server/mcp
	$(GO) test -count=1 -tags mcp -run '^TestClients' ./server/mcp -modules $(CURDIR)/bin/mcp/node_modules -python $(CURDIR)/bin/clients/bin/python

bin/mcp/installed: $(MCP)/package.json $(MCP)/package-lock.json
	@$(HASNPM)
	rm -rf bin/mcp && mkdir -p bin/mcp && cp $^ bin/mcp
	cd bin/mcp && npm ci --silent --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: plugins
plugins: ## build the committed Extism plug-ins and their kernel again; needs clang-22, Debian's Rust and npm
	@for program in clang-22 wasm-ld-22 /usr/bin/cargo npm; do \
		command -v $$program >/dev/null || { echo "$$program is missing: the scripts internal/plugins/*/build.sh name the packages"; exit 1; }; \
	done
	for language in c rust assemblyscript; do internal/plugins/$$language/build.sh || exit 1; done
	runtime/internal/extism/kernel/build.sh
	$(GO) test -count=1 $(TESTFLAGS) ./internal/plugins

.PHONY: interpreters
interpreters: build ## install Python and JavaScript, and test script tools; needs npm, cargo and python3 with pip
	bin/caisson interpreters install --interpreter-dir $(CURDIR)/bin/interpreters
	cd $(INTERPRETERS) && $(GO) vet ./... && CAISSON_INTERPRETERS=$(CURDIR)/bin/interpreters $(GO) test -count=1 -timeout 20m .

# SQLite as a native program, and compiled anew as the module of the SQL tools.
SQL = wasm-tools/sql

.PHONY: sql
sql: bin/sql/native bin/sql/sql.wasm ## build the SQL tools' SQLite anew and natively, compare what they say of 300 statements and of 200 MB; needs cc and clang-22 for WASI
	$(GO) vet -tags sql ./wasm-tools
	$(GO) test -count=1 -timeout 20m -tags sql -run '^TestNative' -v ./wasm-tools -native $(CURDIR)/bin/sql/native -rebuilt $(CURDIR)/bin/sql/sql.wasm

bin/sql/native: $(SQL)/testdata/native.c $(SQL)/guest/options.h $(SQL)/guest/amalgamation.sh
	@command -v cc >/dev/null || { echo 'a C compiler is missing: Debian: apt-get install gcc libc6-dev'; exit 1; }
	mkdir -p bin/sql && $(SQL)/guest/amalgamation.sh bin/sql
	cc -O2 -include $(SQL)/guest/options.h -Ibin/sql $(SQL)/testdata/native.c bin/sql/sqlite3.c -lm -o $@

bin/sql/sql.wasm: $(wildcard $(SQL)/guest/*.c $(SQL)/guest/*.h $(SQL)/guest/*.sh)
	@for program in clang-22 wasm-ld-22; do command -v $$program >/dev/null || { echo "$$program is missing: Debian: apt-get install clang-22 lld-22 libclang-rt-22-dev-wasm32 wasi-libc"; exit 1; }; done
	mkdir -p bin/sql && $(SQL)/guest/build.sh $(CURDIR)/$@

# The pages in docs/languages to follow.
LANGUAGES ?= python javascript c rust zig assemblyscript
space := $(subst ,, )

.PHONY: languages
languages: ## follow the pages in docs/languages, from nothing to a call; all need npm, clang with wasi-libc, Rust and Python with pip, those in LANGUAGES="python c" less
	$(GO) test -count=1 -timeout 30m -tags languages . -run '^TestLanguages$$/^($(subst $(space),|,$(strip $(LANGUAGES))))$$'

# The programs to fetch, build and test; all if empty. Only all of them make the table.
ONLY ?=

.PHONY: programs
programs: ## fetch, build and test third-party programs, and write docs/programs.md; all need Debian 12, Rust, npm, pip and tcl, those in ONLY="gojq goawk" less
	cd $(PROGRAMS) && $(GO) vet . && $(GO) run . build $(ONLY)
ifeq ($(ONLY),)
	cd $(PROGRAMS) && $(GO) run . table >../../bin/programs/table.md
	mv bin/programs/table.md docs/programs.md
endif
	cd $(PROGRAMS) && $(GO) test -count=1 -timeout 1h . -only '$(ONLY)'

# The seed of the first module, and how many there are. The same numbers make the same modules.
SMITHFIRST ?= $(shell date +%s)
SMITHCOUNT ?= 300

.PHONY: smith
smith: ## run SMITHCOUNT modules of a generator's, which may loop for ever; needs cargo
	@command -v cargo >/dev/null || { echo 'cargo 1.88 or later is missing: install a current Rust, for instance with rustup'; exit 1; }
	cd internal/smith && cargo build --release --locked --target-dir ../../bin/smith
	rm -rf bin/smith/modules
	bin/smith/release/smith bin/smith/modules $(SMITHFIRST) $(SMITHCOUNT)
	$(GO) vet -tags smith ./runtime/internal/engine
	$(GO) test -count=1 -timeout 12h -tags smith -run '^TestSmith$$' -v ./runtime/internal/engine -modules $(CURDIR)/bin/smith/modules

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME each
	@for package in $$($(GO) list $(PACKAGES)); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package || exit 1; \
		done; \
	done

# What CI runs beside the tests of Go: the longest first, since several run at a time.
SUITES = interpreters sql postgres openapi-clients mcp clients shells languages openai http

# How often servers are killed, and in which tests. Nightly runs have all. Small disks need unshare and nsenter.
KILLS ?= 1
CRASHES ?= Kills|DatabaseRestarts|FullDisks

.PHONY: postgres
postgres: ## run the tests of the ledger with a PostgreSQL of their own, too; needs Debian's package postgresql
	$(GO) vet -tags postgres ./internal/ledger/... ./cmd/caisson
	$(GO) test -count=1 -tags postgres $(TESTFLAGS) ./internal/ledger/...
	$(GO) test -count=1 -tags postgres $(TESTFLAGS) -run '^TestAttack($(CRASHES))$$' ./cmd/caisson -kills $(KILLS)

.PHONY: suites
suites: LANGUAGES = python c assemblyscript
suites: $(SUITES) ## run the suites that need other languages and programs, a part of the languages and programs
	$(MAKE) programs ONLY=gojq

# What nightly runs, in this order. The rest runs although one fails.
NIGHTLY = fuzz smith languages programs nightly-guards nightly-race nightly-alone nightly-attacks nightly-endless \
	nightly-bounded nightly-kills load knowledge plugins nightly-benchmarks
# The files with tests that the race detector would disturb. No other run of nightly has them at their full size.
NORACE = $$(grep -rlE --include='*_test.go' '^//go:build .*!race' .)
# Time enough for what takes hours.
LONGTEST = $(GO) test -timeout 2h

.PHONY: nightly
nightly: FUZZTIME = 10m
nightly: SMITHCOUNT = 20000
nightly: ## what takes hours: long fuzzing, twenty thousand generated modules, repeated races and attacks, sessions under load, the cost of metering and of many tools
	$(MAKE) --keep-going -j1 FUZZTIME=$(FUZZTIME) SMITHCOUNT=$(SMITHCOUNT) $(NIGHTLY)

.PHONY: nightly-guards nightly-race nightly-alone nightly-attacks nightly-endless nightly-bounded nightly-kills nightly-benchmarks
nightly-guards:
	$(MAKE) faults ONE_IN=1

nightly-race:
	$(LONGTEST) -race -tags slow,nightly $(PACKAGES)
	$(LONGTEST) -race -tags slow,nightly -count=3 ./runtime/...
	$(LONGTEST) -race -run '^TestLoad$$' ./executor -soak 10m
	$(LONGTEST) -race -tags slow,nightly -run '^Test(|Stream|Pause)Model$$' -count=50 ./executor

nightly-alone:
	files=$(NORACE) && tests=$$(grep -ohE '^func Test[A-Za-z0-9_]*' $$files | cut -c6- | sort -u | paste -sd '|') && \
	$(LONGTEST) -tags slow,nightly -run "^($$tests)\$$" $$(dirname $$files | sort -u)

nightly-attacks:
	$(LONGTEST) -tags slow,nightly -run '^TestAttack' -count=5 ./runtime/...

# Without the race detector, which would slow down the times that are measured.
nightly-endless:
	$(LONGTEST) -run '^TestEndlessPrograms$$' ./runtime/internal/engine -programs 2000
	$(LONGTEST) -run '^TestEndlessPrograms$$' ./runtime/internal/engine -programs 2000 -by-the-clock
	$(LONGTEST) -run '^TestEndlessProgramsEnd$$' ./cmd/caisson -programs 100

nightly-bounded:
	$(LONGTEST) -run '^TestProgramsStayWithinTheirFuel$$' ./runtime/internal/engine -programs 5000
	$(LONGTEST) -run '^TestBoundedPrograms$$' ./runtime/internal/engine -programs 100000
	$(LONGTEST) -run '^TestRandomInstructions$$' ./runtime/internal/engine -programs 10000
	$(LONGTEST) -run '^TestMutantsThatAreProvedEnd$$' ./runtime/internal/engine -mutants 500000

nightly-kills:
	$(MAKE) postgres KILLS=100 CRASHES='Kills|KilledReplicas|StoppedReplicas|DatabaseRestarts|FullDisks' TESTFLAGS="-timeout 3h"

nightly-benchmarks:
	$(LONGTEST) -run '^$$' -bench '^BenchmarkMetering$$' -benchtime 81x ./runtime/internal/engine
	$(LONGTEST) -run '^$$' -bench '^BenchmarkUnits$$' -benchtime 1x ./runtime/internal/engine
	$(LONGTEST) -run '^$$' -bench '^BenchmarkThousandTools$$' -benchtime 120s ./internal/benchmark
	$(LONGTEST) -run '^$$' -bench '^BenchmarkCallOverHTTP$$' -benchtime 10s ./server/rest
	$(LONGTEST) -run '^$$' -bench '^BenchmarkAppend$$' -benchtime 20000x ./internal/ledger
	$(LONGTEST) -run '^$$' -bench '^BenchmarkRecords$$' -benchtime 1x ./internal/ledger

.PHONY: check
check: check-format check-vet check-static check-tidy check-bans check-api check-cross ## everything that is checked without running it

.PHONY: check-format
check-format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }

# The build tags of tests.
TAGS = clients,faults,http,knowledge,languages,load,mcp,nightly,openapi,postgres,shells,slow,smith,sql

.PHONY: check-vet
check-vet:
	$(GO) vet $(PACKAGES)
	$(GO) vet -tags $(TAGS) $(PACKAGES)
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./wasm-tools/calculator/... ./wasm-tools/files ./wasm-tools/json/... ./wasm-tools/knowledge/... ./wasm-tools/planning ./wasm-tools/plot/... ./wasm-tools/search/... ./wasm-tools/skills/... ./wasm-tools/text ./wasm-tools/weather/... ./wasm-tools/web/... ./sdk/go ./internal/guests/callprobe ./internal/guests/conformance ./internal/guests/early ./internal/guests/endless ./internal/guests/failing ./internal/guests/foreign ./internal/guests/netprobe ./internal/guests/probe ./internal/guests/reseeded ./internal/guests/seeded ./internal/guests/streamprobe ./examples/turn/hostile/... ./internal/benchmark/guests/go/reactor ./internal/benchmark/guests/go/untunedreactor ./internal/benchmark/guests/go/recursivereactor
	@for plugin in $(PLUGINS); do (cd $$plugin && GOOS=wasip1 GOARCH=wasm $(GO) vet .) || exit 1; done

.PHONY: check-static
check-static: bin/staticcheck
	bin/staticcheck $(PACKAGES)

bin/staticcheck: internal/lint/go.mod internal/lint/go.sum
	cd internal/lint && $(GO) build -o ../../bin/staticcheck honnef.co/go/tools/cmd/staticcheck

.PHONY: check-tidy
check-tidy:
	$(GO) mod tidy -diff
	@for module in $(MODULES); do \
		echo "cd $$module && go mod tidy -diff" && (cd $$module && $(GO) mod tidy -diff) || exit 1; \
	done
	cd internal/lint && $(GO) mod verify
	$(GO) mod verify

.PHONY: check-bans
check-bans:
	.ci/bans

# The number is in internal/lint/api/identifiers.
.PHONY: check-api
check-api:
	cd internal/lint && $(GO) vet ./... && $(GO) test ./... && $(GO) run ./api ../.. api/identifiers

PLATFORMS = linux/arm64 darwin/arm64 windows/amd64

.PHONY: check-cross
check-cross:
	@for platform in $(PLATFORMS); do \
		echo "vet and build for $$platform"; \
		export GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		test $$GOOS = $$($(GO) env GOHOSTOS) || $(GO) vet $(PACKAGES) || exit 1; \
		$(GO) build -o /dev/null ./cmd/caisson || exit 1; \
	done

.PHONY: clean
clean: ## remove what the targets made
	rm -rf bin
	find . -name '*.wasm' -not -path './.git/*' -not -path '*/testdata/*' \
		-not -path './internal/benchmark/guests/c/*' -not -path './internal/benchmark/guests/rust/*' \
		-not -path './internal/guests/early/c/*' -not -path './internal/guests/early/rust/*' \
		-not -path './internal/guests/endless/*/*' -not -path './internal/guests/failing/c/*' -not -path './internal/guests/seeded/c/*' \
		-not -path './internal/plugins/*/*' -not -path './runtime/internal/extism/kernel/*' \
		-not -path './wasm-tools/sql/guest/*' -delete
