# make run    start docket with its demo and print where to look
# make test   install what the tests need, and run them
# make security   look for known faults, in the code and in what it is built from
SHELL := /bin/sh
GO    ?= go
BUILD := .build

AXE_VERSION   := 4.14.1

.PHONY: help run build build-failpoints test setup-test check unit fuzz lint security gosec vulncheck licences torture torture-short release release-test package package-lint package-test upgrade-test acme-test browser bench bench-slow-disk clean

help:
	@sed -n 's/^# make/make/p' Makefile

build:
	CGO_ENABLED=0 $(GO) build -o $(BUILD)/docket ./cmd/docket

# The same, but that it kills itself where its environment says, for the torture.
build-failpoints: build
	$(GO) build -tags failpoints -o $(BUILD)/docket-failpoints ./cmd/docket

run: build
	$(BUILD)/docket serve --demo

# Everything that CI runs.
test: setup-test check unit fuzz gosec torture-short package-test browser

# What the tests need besides Go, as Debian packages, each where it is missing:
# git for every run, a C compiler for the race detector, strace for disks that fail,
# systemd to verify the units and to boot with the package, a browser to look at the
# pages with, and npm to fetch the rules that they are held against.
setup-test:
	@want=; need() { command -v $$1 >/dev/null 2>&1 || want="$$want $$1"; }; \
	need git; need gcc; need strace; need chromium; need npm; \
	[ -e /usr/include/stdlib.h ] || want="$$want libc6-dev"; \
	command -v systemd-analyze >/dev/null 2>&1 || want="$$want systemd"; \
	if [ -n "$$want" ]; then \
		set -e; as=; [ "$$(id -u)" = 0 ] || as=sudo; \
		echo "installing$$want"; $$as apt-get update -q; \
		DEBIAN_FRONTEND=noninteractive $$as apt-get install -q -y --no-install-recommends $$want; \
	fi

# What must hold of the sources themselves.
check:
	@out=$$(gofmt -l cmd store server scheduler dispatcher $(wildcard web)); [ -z "$$out" ] || { echo "not gofmt'ed: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) mod verify

unit:
	$(GO) test -race -timeout 10m ./...

# Each fuzz target for a short time; FUZZTIME=10m for a long one.
FUZZTIME ?= 5s
fuzz:
	@for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "fuzz $$dir $$target"; \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x || exit 1; \
		done; \
	done

# Deliveries while the real binary is killed at random moments and at every named
# point, while syncs and writes fail, the disk is full, and it is upgraded, compacted
# and copied: for some minutes, with LONG=1 for an hour or longer, and a little in CI. The
# long form needs strace, and root to mount a small disk; the others say what they
# leave out. Hostile clients here alone, since what they show is measured by a clock.
# And statuses on their way to a GitHub that limits, fails and loses answers, for DRIVE
# steps; DOCKET_DRIVE_SEED=N goes a way again that a failed test names.
DRIVE ?= 20000
LONG  ?=
ifneq ($(LONG),)
TORTURE := TORTURE_LONG=1 TORTURE_FOR=55m TORTURE_DELIVERIES=100000 TORTURE_KILLS=1100 TORTURE_ROUNDS=10 TORTURE_LEAST=10 TORTURE_COPIES=30
endif
torture: build-failpoints
ifneq ($(LONG),)
	$(TORTURE) $(GO) test -tags torture -count 1 -v -parallel 2 -timeout 3h -run '^TestTorture(OrdinaryBinary|FullDisk)?$$' ./cmd/docket
else
	DOCKET_DRIVE=$(DRIVE) $(GO) test -count 1 -v -timeout 60m -run '^TestDrive$$' ./cmd/docket
	$(GO) test -tags torture -count 1 -v -timeout 60m -run '^TestTorture' ./cmd/docket
endif

torture-short: build-failpoints
	TORTURE_DELIVERIES=400 TORTURE_KILLS=40 TORTURE_COPIES=1 TORTURE_BACKUPS=10 $(GO) test -tags torture -count 1 -v -timeout 10m -run '^TestTorture(Backups|OrdinaryBinary|FullDisk)?$$' ./cmd/docket

# Static binaries of the commit that is checked out, the same bytes wherever they are
# built, with SHA256SUMS and the licences of what they hold. The toolchain is fixed:
# its standard library is in them, and its faults would be.
TOOLCHAIN := go1.26.11
ARCHES := amd64 arm64
DIST   := $(BUILD)/dist
EPOCH  := $(shell git log -1 --format=%ct 2>/dev/null)
ARCH   := $(shell $(GO) env GOARCH)
HOST   := docket-linux-$(ARCH)
release:
	@mkdir -p $(DIST) && rm -f $(DIST)/*
	@set -e; src=$$(mktemp -d); trap 'rm -rf "$$src"' EXIT; git clone -q --no-hardlinks . "$$src"; \
	for arch in $(ARCHES); do echo "$(DIST)/docket-linux-$$arch"; \
		(cd "$$src" && GOTOOLCHAIN=$(TOOLCHAIN) CGO_ENABLED=0 GOOS=linux GOARCH=$$arch GOAMD64=v1 GOARM64=v8.0 $(GO) build -trimpath -buildvcs=true \
			-ldflags '-s -w' -o $(CURDIR)/$(DIST)/docket-linux-$$arch ./cmd/docket); done; \
	cp "$$src/LICENSE" $(DIST)/docket-LICENSE; cp "$$src/packaging/THIRD_PARTY_LICENSES" $(DIST)/docket-THIRD_PARTY_LICENSES
	cd $(DIST) && sha256sum docket* >SHA256SUMS

# Two checkouts in two directories give the same bytes, packages included.
release-test:
	GO=$(GO) sh packaging/release-test

# Debian packages. The package builder is fetched, it is no part of docket.
NFPM := $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
package: release
	for arch in $(ARCHES); do SOURCE_DATE_EPOCH=$(EPOCH) NFPM="$(NFPM)" sh packaging/deb/build $$arch \
		$(DIST)/docket-linux-$$arch $(DIST)/$(HOST) $(DIST) || exit 1; done
	cd $(DIST) && sha256sum docket* >SHA256SUMS

# What Debian's own checker says of them.
package-lint: package
	lintian --fail-on error,warning $(DIST)/docket_*.deb

# The package is installed, configured, upgraded, removed and purged, and lives under
# systemd as process 1, in a root of its own each. Needs root.
package-test:
	$(MAKE) -s package ARCHES=$(ARCH) DIST=$(BUILD)/package-test TOOLCHAIN=local
	sh packaging/package-test $(BUILD)/package-test/docket_*.deb
	sh packaging/systemd-test $(BUILD)/package-test/docket_*.deb

# Upgrades and restarts while deliveries come in, of which one in PUSHES_PER_RUN starts
# a run: none may be refused or lost.
UPGRADES       ?= 500
PUSHES_PER_RUN ?= 3
upgrade-test:
	DOCKET_UPGRADES=$(UPGRADES) DOCKET_PUSHES_PER_RUN=$(PUSHES_PER_RUN) $(GO) test -count 1 -v -timeout 60m -run '^TestUpgradesUnderLoad$$|^TestRestartsUnderActivation$$' ./cmd/docket

# A certificate from Let's Encrypt's authority for tests, which is built here and
# is no part of docket.
PEBBLE := github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.3
acme-test:
	GOBIN=$(CURDIR)/$(BUILD) $(GO) install $(PEBBLE)
	DOCKET_PEBBLE=$(CURDIR)/$(BUILD)/pebble $(GO) test -count 1 -v -timeout 5m -run '^TestCertificateFromAnAuthority$$' ./cmd/docket

# The pages, in a real browser before the real server.
browser: $(BUILD)/axe.min.js
	$(GO) vet -tags browser ./cmd/docket
	DOCKET_AXE=$(abspath $(BUILD)/axe.min.js) $(GO) test -tags browser -count 1 -timeout 10m -run '^TestBrowser' ./cmd/docket

$(BUILD)/axe.min.js:
	@mkdir -p $(BUILD)/axe
	cd $(BUILD)/axe && npm pack --silent axe-core@$(AXE_VERSION) && tar -xzf axe-core-$(AXE_VERSION).tgz package/axe.min.js
	mv $(BUILD)/axe/package/axe.min.js $@ && rm -r $(BUILD)/axe

# Figures, as ratios in one run. See README.md, "How fast".
bench:
	$(GO) test -run '^$$' -bench . -benchtime 3s -count 3 -timeout 60m ./store ./server

# The same on a slower disk: strace makes every fdatasync, also those of the
# unit, take SYNC_DELAY microseconds more.
SYNC_DELAY ?= 500
bench-slow-disk:
	@command -v strace >/dev/null || { echo "bench-slow-disk needs strace"; exit 1; }
	$(GO) test -c -o $(BUILD)/store.test ./store
	$(GO) test -c -o $(BUILD)/server.test ./server
	for room in store server; do (cd $$room && strace -f --seccomp-bpf -qq -o /dev/null -e trace=fdatasync \
		-e inject=fdatasync:delay_exit=$(SYNC_DELAY) $(CURDIR)/$(BUILD)/$$room.test -test.run '^$$' -test.bench 'Accept$$|Hook' \
		-test.benchtime 3s -test.count 3); done

# Faults of kinds that are known: in docket's own code, and in what it is built
# from. Each finding that is none has its reason in .gosec.json or in
# packaging/vulnerabilities.
security: gosec vulncheck

GOSEC := github.com/securego/gosec/v2/cmd/gosec@v2.30.0
gosec:
	$(GO) run $(GOSEC) -quiet -conf .gosec.json ./...

# Fails too where no database can be had: then nothing was looked at.
vulncheck:
	GO=$(GO) GOTOOLCHAIN=$(TOOLCHAIN) sh packaging/vulncheck

# What the binary holds of others, and their licences; after go.mod has changed.
licences:
	@mkdir -p $(BUILD)
	$(GO) run packaging/licences.go >$(BUILD)/licences
	mv $(BUILD)/licences packaging/THIRD_PARTY_LICENSES

lint: check
	$(GO) run honnef.co/go/tools/cmd/staticcheck@latest ./...

clean:
	rm -rf $(BUILD)
