package oauth_test

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign.dev/tenants"
)

const inZone = "COUNTERSIGN_TEST_ZONE"

// B112: no token, grant or receipt knows what the clocks on the wall say, neither
// those of the service's machine nor the database's: over the changes to summer and
// winter time, a leap day, and the end of 32 bits.
func TestClocksOnTheWallChangeNothing(t *testing.T) {
	if zone := os.Getenv(inZone); zone != "" {
		livesThroughChanges(t, zone)
		return
	}
	for _, zone := range []string{"Europe/London", "America/St_Johns", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestClocksOnTheWallChangeNothing$", "-test.count=1", "-test.v")
			child.Env = append(os.Environ(), "TZ="+zone, inZone+"="+zone)
			out, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// stamped is a time as JSON documents of ours hold it.
var stamped = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

func livesThroughChanges(t *testing.T, zone string) {
	if _, off := time.Date(2027, 7, 1, 0, 0, 0, 0, time.Local).Zone(); off == 0 {
		t.Fatalf("this process does not live in %s: it lacks time zones", zone)
	}
	d := newDoor(t, nil)
	elsewhere := map[string]string{"Europe/London": "Australia/Lord_Howe", "America/St_Johns": "Europe/London", "Asia/Kathmandu": "America/St_Johns"}[zone]
	d.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), '`+elsewhere+`'); END $$`)
	d.Owner.Reset()
	d.DB.Pool().Reset()
	var got string
	if err := d.DB.Pool().QueryRow(t.Context(), `SELECT current_setting('timezone')`).Scan(&got); err != nil || got != elsewhere {
		t.Fatalf("the database lives in %s, %v", got, err)
	}
	key := d.key(t, d.Hotel, tenants.RightReceipts)
	for _, change := range []time.Time{
		time.Date(2027, 3, 14, 5, 30, 0, 0, time.UTC), time.Date(2027, 11, 7, 4, 30, 0, 0, time.UTC), // St. John's
		time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2028, 2, 29, 23, 59, 59, 0, time.UTC),
		time.Date(2028, 3, 26, 1, 0, 0, 0, time.UTC), time.Date(2028, 10, 29, 1, 0, 0, 0, time.UTC), // London
		time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC),
	} {
		const before = 70 * time.Minute // the hour before a change is the one that failed elsewhere
		for _, early := range []time.Duration{before, 10 * time.Minute} {
			at := change.Add(-early)
			d.Clock.Advance(at.Sub(d.Clock.Now()))
			h := d.delegated(t, d.Hotel, d.pa, "bookings:read")
			worth := h.worth(t)
			if exp := worth.json["exp"]; exp != float64(at.Unix()+900) {
				t.Errorf("%s: a token of %v ends at %v", at, at.Unix(), exp)
			}
			var until time.Time
			if err := d.Owner.QueryRow(t.Context(), `SELECT expires_at FROM grants WHERE id = $1`, h.grant).Scan(&until); err != nil || !until.Equal(at.Add(30*24*time.Hour)) {
				t.Errorf("%s: the grant ends at %s, %v", at, until.UTC(), err)
			}
			a := d.send(t, d.Hotel, "/receipts", key, d.served(h.access, "m-"+at.Format(time.RFC3339)))
			if a.status != http.StatusOK {
				t.Fatalf("%s: %d %s", at, a.status, a.body)
			}
			stamps := stamped.FindAllString(a.body, -1)
			for _, s := range stamps {
				if !strings.HasSuffix(s, `Z"`) {
					t.Errorf("%s: a receipt says %s", at, s)
				}
			}
			if len(stamps) == 0 {
				t.Errorf("%s: a receipt without a time: %s", at, a.body)
			}
			d.Clock.Advance(15*time.Minute - time.Second)
			if a := h.worth(t); a.json["active"] != true {
				t.Errorf("%s: dead before its time: %s", at, a.body)
			}
			d.Clock.Advance(time.Second)
			if a := h.worth(t); a.body != dead {
				t.Errorf("%s: lives beyond its time: %s", at, a.body)
			}
			a = h.renew(t, h.refresh)
			if a.status != http.StatusOK {
				t.Fatalf("%s: %d %s", at, a.status, a.body)
			}
			h.take(t, a)
			if exp := h.worth(t).json["exp"]; exp != float64(d.Clock.Now().Unix()+900) {
				t.Errorf("%s: refreshed, it ends at %v", at, exp)
			}
			if a := h.post(t, "/revoke", map[string][]string{"token": {h.refresh}}); a.status != http.StatusOK {
				t.Errorf("%s: %d", at, a.status)
			}
		}
	}
}
