# hangcheck: make demo · make test · make bench · make install PREFIX=/usr/local
SWIFT ?= swift
PREFIX ?= /usr/local
DESTDIR ?=
HELPERS = $(DESTDIR)$(PREFIX)/libexec/hangcheck

.PHONY: demo test bench build deps install uninstall lint clean

# Builds, and has hangcheck explain a program that deadlocks over two NSLocks (status 66 is its answer).
demo: build
	@mkdir -p .build/examples
	swiftc -g Examples/LockOrder/wrong.swift -o .build/examples/LockOrder
	@echo '$$ hangcheck ./LockOrder'
	@.build/release/hangcheck --on-deadlock terminate --timeout 30s .build/examples/LockOrder; \
	  status=$$?; if [ $$status -ne 66 ]; then echo "hangcheck ended with $$status, not 66" >&2; exit 1; fi

# Every test; whole programs run under the release build, which is the one that people use.
test: build
	@Scripts/dependencies test
	$(SWIFT) build --build-tests
	SWIFT=$(SWIFT) Scripts/test

bench: build
	Benchmarks/run

build: deps
	$(SWIFT) build -c release

# Installs the Debian packages that are missing, and none when nothing is.
deps:
	@Scripts/dependencies

# The agent lies beside the executable, where it looks first; the command is a link to it.
install: build
	install -d $(HELPERS) $(DESTDIR)$(PREFIX)/bin
	install -m 755 .build/release/hangcheck $(HELPERS)/hangcheck
	install -m 755 .build/release/libHangAgent.so $(HELPERS)/libHangAgent.so
	ln -sf ../libexec/hangcheck/hangcheck $(DESTDIR)$(PREFIX)/bin/hangcheck

uninstall:
	rm -rf $(HELPERS) $(DESTDIR)$(PREFIX)/bin/hangcheck

lint:
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests Examples Benchmarks

clean:
	rm -rf .build
