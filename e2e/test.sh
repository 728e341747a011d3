#!/usr/bin/env bash
# Runs every check there is, on a fresh Debian machine too: what is missing is
# installed first. A failing check ends the run and says which.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

# need COMMAND PACKAGE...: installs the packages unless the command is there.
need() {
	local command=$1
	shift
	if command -v "$command" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$command" >/dev/null; then
		return
	fi
	say "installing $*"
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "$command is missing. As root: apt-get install --no-install-recommends $*" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >/dev/null
	apt-get install -yq --no-install-recommends "$@" >/dev/null
}

say "tools"
need postgres postgresql
need chromium chromium
need npm npm
need xz xz-utils
need nginx nginx-light # reads what we give a Brand for its proxy
need caddy caddy       # likewise
untried=
if ! command -v "${TRAEFIK_BIN:-traefik}" >/dev/null; then
	untried=", but nothing was tried with Traefik: no Debian package has it; put one on PATH or name it in TRAEFIK_BIN"
fi
need cc gcc libc6-dev # the race detector needs a C compiler
npm ci --prefix e2e --no-audit --no-fund --silent

gofumpt=mvdan.cc/gofumpt@v0.12.0
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

say "gofumpt"
unformatted=$(git ls-files -co --exclude-standard '*.go' | grep -v '_templ\.go$' | xargs go run "$gofumpt" -l)
if [ -n "$unformatted" ]; then
	echo "not formatted; run gofumpt -w on:" >&2
	echo "$unformatted" >&2
	exit 1
fi

say "templ generate changes nothing"
before=$(git ls-files -co --exclude-standard '*_templ.go' | xargs sha256sum)
go tool templ generate >/dev/null 2>&1
after=$(git ls-files -co --exclude-standard '*_templ.go' | xargs sha256sum)
if [ "$before" != "$after" ]; then
	echo "generated pages are not what their sources say; commit the result of: go tool templ generate" >&2
	diff <(echo "$before") <(echo "$after") >&2 || true
	exit 1
fi

say "go.mod is tidy, no registry is named"
go mod tidy -diff
go mod verify >/dev/null
if grep -nE '"resolved"' e2e/package-lock.json; then
	echo "the lock file names a registry host; drop its resolved fields" >&2
	exit 1
fi

# The signing tests need a real Vault: VAULT_BIN or a vault on PATH, otherwise
# one is built once into the user's cache (some ten minutes on two cores).
say "a real Vault"
go test -count=1 -v -run '^TestVaultStarts$' -timeout 60m ./authority/signing/signingtest

say "vet"
go vet ./...

say "staticcheck"
go run "$staticcheck" ./...

# One PostgreSQL serves all packages' tests; each test has a database of its own.
say "go test -race"
go test -race -timeout 40m $(go list ./... | grep -v /e2e)

# A number of inputs, not a time: when a time runs out, go test may take its own
# deadline for a failure of the target (golang/go#75804).
say "fuzz, some thousand inputs each"
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
	package=./$(dirname "${file#./}")
	grep -oE '^func Fuzz[A-Za-z0-9]+' "$file" | sed 's/func //' | while read -r target; do
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5000x}" -fuzzminimizetime 10x "$package"
	done
done

say "conformance: every rule holds, and none can be removed unnoticed"
rules='^(TestConformance|TestNoRuleCanBeRemovedUnnoticed)$'
go test -count=1 -v -parallel 3 -timeout 60m -run "$rules" ./e2e

# Every look is examined; pictures are for people.
export COUNTERSIGN_PICTURES="${COUNTERSIGN_PICTURES:-none}"
say "journeys in a real browser"
COUNTERSIGN_GALLERY=ask go test -count=1 -timeout 30m ./consent/pages
# One package after the other: the storm would starve the browsers.
go test -p 1 -count=1 -timeout 60m -skip "$rules" ./e2e/...

say "all checks passed$untried"
