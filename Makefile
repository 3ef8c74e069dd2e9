# Everything here needs Go and nothing else. `make help` lists the targets.

GO ?= go
# Every Go package but the guests, which have no tests of their own outside a sandbox.
PACKAGES = ./...

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile bin/caisson
	$(GO) build -trimpath -o bin/caisson ./cmd/caisson

.PHONY: tools
tools: ## compile the first-party tools and the examples' guests to WebAssembly
	$(GO) run ./internal/guests/compile

.PHONY: demo
demo: build tools ## run an assistant's turn: five useful calls, three contained attacks
	$(GO) run ./examples/turn

.PHONY: deps
deps: ## download every module that the other targets need
	$(GO) mod download
	cd internal/lint && $(GO) mod download
	cd internal/guests/thirdparty && $(GO) mod download

.PHONY: test
test: ## run the tests
	$(GO) test $(PACKAGES)

.PHONY: race
race: ## run the tests under the race detector
	$(GO) test -race $(PACKAGES)

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME each
	@for package in $$($(GO) list $(PACKAGES)); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

.PHONY: check
check: check-format check-vet check-static check-tidy check-bans check-cross ## everything that is checked without running it

.PHONY: check-format
check-format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }

.PHONY: check-vet
check-vet:
	$(GO) vet $(PACKAGES)
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./wasm-tools/... ./internal/guests/probe ./examples/turn/hostile/...

.PHONY: check-static
check-static: bin/staticcheck
	bin/staticcheck $(PACKAGES)

bin/staticcheck: internal/lint/go.mod internal/lint/go.sum
	cd internal/lint && $(GO) build -o ../../bin/staticcheck honnef.co/go/tools/cmd/staticcheck

.PHONY: check-tidy
check-tidy:
	$(GO) mod tidy -diff
	cd internal/lint && $(GO) mod verify
	cd internal/guests/thirdparty && $(GO) mod verify
	$(GO) mod verify

# Calls that libraries here do without, each for the reason that it prints.
LIBRARIES = -- '*.go' ':!*_test.go' ':!cmd' ':!examples' ':!wasm-tools' ':!internal/guests'
ban = @! git grep -nE $(1) $(LIBRARIES) || { echo "banned: $(2)"; exit 1; }

.PHONY: check-bans
check-bans:
	$(call ban,'http\.Default(Client|Transport)',they follow redirects and proxies that no permission was checked for)
	$(call ban,'WithDirMount|WithReadOnlyDirMount|WithFSMount|ReadFS',a guest leaves those mounts through a symlink; use hostfuncs/files)
	$(call ban,'context\.(Background|TODO)\(\)',a library takes its context from the caller)
	$(call ban,'fmt\.Print(f|ln)?\(',a library logs to the slog.Logger that it was given)
	$(call ban,'^func init\(\)',what a package does at start-up cannot be left out or tested)
	$(call ban,'os\.(Exit|Getenv|Environ)\(',only a program decides when it ends and what it reads from its environment)
	@! git grep -nIE '(TODO|FIXME|XXX|HACK)\b' -- '*.go' Makefile ':!Makefile' || { echo "banned: unfinished work belongs in an issue"; exit 1; }
	@! git grep -nE '\bt\.Skip' -- '*_test.go' || { echo "banned: a test that cannot run must fail"; exit 1; }

PLATFORMS = linux/arm64 darwin/arm64 windows/amd64

.PHONY: check-cross
check-cross:
	@for platform in $(PLATFORMS); do \
		echo "vet and build for $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) vet $(PACKAGES) || exit 1; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -o /dev/null ./cmd/caisson || exit 1; \
	done

.PHONY: clean
clean: ## remove what the targets made
	rm -rf bin
	find . -name '*.wasm' -not -path './.git/*' -not -path '*/testdata/*' -delete
