package migrations_test

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"countersign.dev/migrations"
)

// beforeRelease are the faults of files that only ever met empty databases: they
// landed before the first release and are never edited.
// The two that "cannot be done twice" can: what they drop is made again before.
var beforeRelease = map[string]bool{
	"0007 signing_keys is scanned under its lock":          true,
	"0007 index on signing_keys, not CONCURRENTLY":         true,
	"0008 audit_events is rewritten":                       true,
	"0008 audit_events is scanned under its lock":          true,
	"0008 the version before still needs it: DROP COLUMN":  true,
	"0008 index on grants, not CONCURRENTLY":               true,
	"0008 device_requests is scanned under its lock":       true,
	"0008 index on device_requests, not CONCURRENTLY":      true,
	"0009 index on audit_events, not CONCURRENTLY":         true,
	"0010 index on grants, not CONCURRENTLY":               true,
	"0010 index on status_entries, not CONCURRENTLY":       true,
	"0011 journeys is scanned under its lock":              true,
	"0020 brands is scanned under its lock":                true,
	"0020 index on browser_sessions, not CONCURRENTLY":     true,
	"0022 providers is gone over in one statement":         true,
	"0022 login_connections is scanned under its lock":     true,
	"0022 login_connections is gone over in one statement": true,
	"0022 index on login_connections, not CONCURRENTLY":    true,
	"0026 no lock_timeout":                                 true,
	"0028 login_connections is scanned under its lock":     true,
	"0028 journeys is scanned under its lock":              true,
	"0028 index on journeys, not CONCURRENTLY":             true,
	"0029 brands is scanned under its lock":                true,
	"0029 brands is gone over in one statement":            true,
	"0029 brand_urls is filled in one statement":           true,
	"0033 no lock_timeout":                                 true,
	"0036 brands is scanned under its lock":                true,
	"0036 agents is scanned under its lock":                true,
	"0036 index on agents, not CONCURRENTLY":               true,
	"0036 browser_sessions is gone over in one statement":  true,
	"0036 index on browser_sessions, not CONCURRENTLY":     true,
	"0037 cannot be done twice: ALTER TABLE receipts DROP CONSTRAINT receipts_pkey, ADD CONSTRAINT receipts_pkey PRIMARY KEY USING INDEX receipts_tree":                              true,
	"0040 cannot be done twice: ALTER TABLE log_checkpoints DROP CONSTRAINT log_checkpoints_pkey, ADD CONSTRAINT log_checkpoints_pkey PRIMARY KEY USING INDEX log_checkpoints_named": true,
	"0041 no lock_timeout":         true,
	"0042 recoveries is rewritten": true,
	"0043 no lock_timeout":         true,
}

// The first file that must not keep the traffic waiting for longer than the
// service itself waits for a lock.
const briefFrom = 60

// B110: a migration meets tables that are large and in use. It waits for none of
// them for long, rewrites and scans none while it holds it, makes indexes beside
// the traffic, and takes nothing away that the version before still needs.
func TestMigrationsKeepNobodyWaiting(t *testing.T) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(beforeRelease)
	for _, name := range names {
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(name[:4])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faultsOf(number, string(text)) {
			key := name[:4] + " " + f
			if beforeRelease[key] {
				delete(left, key)
				continue
			}
			t.Errorf("%s: %s", name, f)
		}
	}
	for key := range left {
		t.Errorf("%s is allowed and not there", key)
	}
}

// The test above, tested.
func TestWhatKeepsEverybodyWaitingIsFound(t *testing.T) {
	const brief = "-- +goose Up\nSET lock_timeout = '2s';\n"
	for _, tt := range []struct{ sql, fault string }{
		{"-- +goose Up\nALTER TABLE grants ADD COLUMN a int;", "no lock_timeout"},
		{"-- +goose Up\nSET lock_timeout = '5s';\nALTER TABLE grants ADD COLUMN a int;", "lock_timeout 5s"},
		{"-- +goose Up\nSET lock_timeout = 0;\nALTER TABLE grants ADD COLUMN a int;", "no lock_timeout"},
		{brief + "CREATE INDEX x ON grants (id);", "index on grants, not CONCURRENTLY"},
		{brief + "CREATE UNIQUE INDEX x ON grants (id);", "index on grants, not CONCURRENTLY"},
		{brief + "CREATE INDEX CONCURRENTLY x ON grants (id);", "CONCURRENTLY in a transaction"},
		{"-- +goose NO TRANSACTION\n" + brief + "SET lock_timeout = 0;\nCREATE INDEX CONCURRENTLY x ON grants (id);", "x may be left invalid, and is not dropped first"},
		{"-- +goose NO TRANSACTION\n" + brief + "DROP INDEX CONCURRENTLY IF EXISTS x;\nCREATE INDEX CONCURRENTLY x ON grants (id);", "CONCURRENTLY with a lock_timeout leaves it invalid"},
		{"-- +goose NO TRANSACTION\n" + brief + "ALTER TABLE grants ADD COLUMN a int;", "cannot be done twice: ALTER TABLE grants ADD COLUMN a int"},
		{brief + "ALTER TABLE grants ALTER COLUMN id TYPE text;", "grants is rewritten"},
		{brief + "ALTER TABLE grants ADD COLUMN a uuid DEFAULT gen_random_uuid();", "grants is rewritten"},
		{brief + "ALTER TABLE grants ADD COLUMN a int GENERATED ALWAYS AS (1) STORED;", "grants is rewritten"},
		{brief + "ALTER TABLE grants ADD COLUMN a int NOT NULL;", "grants has rows that lack it"},
		{brief + "ALTER TABLE grants ALTER COLUMN a SET NOT NULL;", "grants is scanned under its lock"},
		{brief + "ALTER TABLE grants ADD CONSTRAINT c CHECK (id IS NOT NULL);", "grants is scanned under its lock"},
		{brief + "ALTER TABLE grants ADD CONSTRAINT c CHECK (a > 0) NOT VALID, ADD CONSTRAINT d CHECK (a > 0);", "grants is scanned under its lock"},
		{brief + "ALTER TABLE grants ADD FOREIGN KEY (a) REFERENCES b;", "grants is scanned under its lock"},
		{brief + "ALTER TABLE grants ADD PRIMARY KEY (a);", "grants is scanned under its lock"},
		{brief + "UPDATE grants SET a = 1;", "grants is gone over in one statement"},
		{brief + "WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM grants;", "y is filled in one statement"},
		{brief + "DELETE FROM grants;", "grants is gone over in one statement"},
		{brief + "ALTER TABLE grants DROP COLUMN a;", "the version before still needs it: DROP COLUMN"},
		{brief + "ALTER TABLE grants RENAME COLUMN a TO b;", "the version before still needs it: RENAME"},
		{brief + "DROP TABLE grants;", "the version before still needs it: DROP TABLE"},
		{brief + "ALTER TABLE grants ADD COLUMN a int;", ""},
		{brief + "ALTER TABLE grants ADD COLUMN a int NOT NULL DEFAULT 0;", ""},
		{brief + "ALTER TABLE grants ADD CONSTRAINT c CHECK (a > 0) NOT VALID;", ""},
		{"-- +goose NO TRANSACTION\n" + brief + "ALTER TABLE grants ALTER COLUMN a SET DEFAULT nextval('s');", ""},
		{brief + "CREATE TABLE n (a int);\nCREATE INDEX x ON n (a);\nALTER TABLE n ADD CHECK (a > 0);", ""},
		{"-- +goose NO TRANSACTION\n" + brief + "ALTER TABLE grants ADD COLUMN IF NOT EXISTS a int;\nSET lock_timeout = 0;\nDROP INDEX CONCURRENTLY IF EXISTS x;\nCREATE INDEX CONCURRENTLY x ON grants (id);", ""},
	} {
		var want []string
		if tt.fault != "" {
			want = []string{tt.fault}
		}
		if got := faultsOf(briefFrom, tt.sql); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", tt.sql, got, want)
		}
	}
}

var (
	lockTimeout  = regexp.MustCompile(`(?i)^SET lock_timeout = '?(\d+)s?'?$`)
	makesTable   = regexp.MustCompile(`(?i)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	makesIndex   = regexp.MustCompile(`(?i)^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?(\w+) ON (\w+)`)
	dropsIndex   = regexp.MustCompile(`(?i)^DROP INDEX CONCURRENTLY IF EXISTS (\w+)`)
	altersTable  = regexp.MustCompile(`(?i)^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(\w+) (.*)`)
	goesOver     = regexp.MustCompile(`(?i)^(?:WITH .*)?\b(?:UPDATE|DELETE FROM) (\w+)`)
	fills        = regexp.MustCompile(`(?i)^(?:WITH .*)?\bINSERT INTO (\w+).*\bSELECT\b.*\bFROM\b`)
	rewrites     = regexp.MustCompile(`(?i)\bTYPE\b|\bSTORED\b|\bAS IDENTITY\b|SERIAL\b|\bDEFAULT\b.*\b(gen_random_uuid|random|clock_timestamp|nextval)\(`)
	lacks        = regexp.MustCompile(`(?i)^ADD COLUMN .*\bNOT NULL\b`)
	scans        = regexp.MustCompile(`(?i)\bSET NOT NULL\b|^ADD (CONSTRAINT \w+ )?(CHECK|FOREIGN KEY|PRIMARY KEY|UNIQUE|EXCLUDE)\b`)
	excused      = regexp.MustCompile(`(?i)\bNOT VALID\b|\bUSING INDEX\b`)
	onlyDefault  = regexp.MustCompile(`(?i)^ALTER (COLUMN )?\w+ SET DEFAULT\b`) // of rows to come
	takesAway    = regexp.MustCompile(`(?i)\b(DROP COLUMN|DROP TABLE|DROP VIEW|RENAME)\b`)
	canBeTwice   = regexp.MustCompile(`(?i)^(SET|GRANT|REVOKE|COMMENT|CREATE OR REPLACE|ANALYZE)\b|IF (NOT )?EXISTS|^CREATE (UNIQUE )?INDEX CONCURRENTLY|^DO |^ALTER TABLE \w+ ALTER COLUMN \w+ SET DEFAULT [^,]*$`)
	actionsApart = regexp.MustCompile(`,\s*(?:ADD|ALTER|DROP|VALIDATE|ENABLE|DISABLE|FORCE)\b`)
)

// faultsOf reads a file as goose does, statement by statement. What stands in the
// body of a function or of a DO is not read: it is for the reviewer.
func faultsOf(number int, text string) (faults []string) {
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	most := 5
	if number >= briefFrom {
		most = 2
	}
	inTransaction := !strings.Contains(text, "+goose NO TRANSACTION")
	ours := make(map[string]bool)    // tables that this file makes, which are empty
	dropped := make(map[string]bool) // indexes that an attempt before may have left
	bounded, asked := 0, false
	for _, s := range statements(text) {
		if m := lockTimeout.FindStringSubmatch(s); m != nil {
			bounded, _ = strconv.Atoi(m[1])
			if bounded > most {
				say("lock_timeout %ds", bounded)
			}
			continue
		}
		if m := dropsIndex.FindStringSubmatch(s); m != nil {
			dropped[m[1]] = true
			continue
		}
		index := makesIndex.FindStringSubmatch(s)
		if bounded == 0 && !asked && (index == nil || index[1] == "") {
			say("no lock_timeout")
			asked = true
		}
		if !inTransaction && !canBeTwice.MatchString(s) && !altersOurs(s, ours) {
			say("cannot be done twice: %s", s)
		}
		switch {
		case index != nil && index[1] == "" && !ours[index[3]]:
			say("index on %s, not CONCURRENTLY", index[3])
		case index != nil && index[1] != "" && inTransaction:
			say("CONCURRENTLY in a transaction")
		case index != nil && index[1] != "" && !dropped[index[2]]:
			say("%s may be left invalid, and is not dropped first", index[2])
		case index != nil && index[1] != "" && bounded != 0:
			say("CONCURRENTLY with a lock_timeout leaves it invalid")
		}
		if m := makesTable.FindStringSubmatch(s); m != nil {
			ours[m[1]] = true
			continue
		}
		if m := altersTable.FindStringSubmatch(s); m != nil && !ours[m[1]] {
			for _, action := range actions(m[2]) {
				switch {
				case rewrites.MatchString(action) && !onlyDefault.MatchString(action):
					say("%s is rewritten", m[1])
				case scans.MatchString(action) && !excused.MatchString(action):
					say("%s is scanned under its lock", m[1])
				case lacks.MatchString(action) && !strings.Contains(action, "DEFAULT"):
					say("%s has rows that lack it", m[1])
				}
			}
		}
		if m := goesOver.FindStringSubmatch(s); m != nil && !ours[m[1]] {
			say("%s is gone over in one statement", m[1])
		}
		if m := fills.FindStringSubmatch(s); m != nil {
			say("%s is filled in one statement", m[1])
		}
		if m := takesAway.FindStringSubmatch(s); m != nil && (strings.HasPrefix(s, "ALTER TABLE") || strings.HasPrefix(s, "DROP")) {
			say("the version before still needs it: %s", m[1])
		}
	}
	return faults
}

func altersOurs(s string, ours map[string]bool) bool {
	m := altersTable.FindStringSubmatch(s)
	return m != nil && ours[m[1]]
}

// actions are the parts of an ALTER TABLE.
func actions(s string) (list []string) {
	from := 0
	for _, at := range actionsApart.FindAllStringIndex(s, -1) {
		list = append(list, strings.TrimSpace(s[from:at[0]]))
		from = at[0] + 1
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// statements are a file's, each on one line without comments; those of more than
// one statement, between goose's marks, are only their first line.
func statements(text string) (list []string) {
	var s []string
	marked := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "-- +goose StatementBegin"):
			marked = true
		case strings.HasPrefix(line, "-- +goose StatementEnd"):
			marked = false
			list, s = append(list, s[0]), nil
		}
		line, _, _ = strings.Cut(line, "--")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		s = append(s, strings.TrimSuffix(line, ";"))
		if !marked && strings.HasSuffix(line, ";") {
			list, s = append(list, strings.Join(s, " ")), nil
		}
	}
	return list
}
