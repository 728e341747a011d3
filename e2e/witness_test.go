package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign.dev/authority/receiptlog"
)

// R78, R80: anybody watches the log of a real Brand with a key and a clock of their
// own, and whoever trusts them demands their word offline, with our verifier; the
// script for Brands reads the same file.
func TestAnybodyWitnessesTheLog(t *testing.T) {
	p := theProduct(t)
	hotel := p.hotel(t)
	asked := p.ask(t, hotel, userOf(t), "bookings:read")
	answers(t, hotel, asked.Link)
	token := asked.poll().AccessToken
	turn := func(message string) {
		t.Helper()
		_, heads := hotel.call(t, "/receipts", map[string]any{
			"delegation_token": token, "agent": p.Agent.Issuer, "contextId": t.Name(), "messageId": message,
			"scopesUsed": []string{}, "actions": []any{},
		})
		var seq int64
		if _, err := fmt.Sscan(heads.Get("Countersign-Log-Seq"), &seq); err != nil {
			t.Fatal(err)
		}
		hotel.checkpointOf(t, seq)
	}
	folder := t.TempDir()
	key, seen, jwks := filepath.Join(folder, "key"), filepath.Join(folder, "seen.ndjson"), filepath.Join(folder, "jwks")
	public, exit := p.run(t, "", "witness", "--key", key, "--name", "witness.example/hotel")
	if exit != 0 {
		t.Fatalf("no key: exit %d", exit)
	}
	public = strings.TrimSpace(public)
	stranger, _ := p.run(t, "", "witness", "--key", key+"2", "--name", "witness.example/hotel")
	for _, message := range []string{"m1", "m2"} {
		turn(message)
		if out, exit := p.run(t, "", "witness", "--key", key, "--log", seen, "--issuer", hotel.Issuer); exit != 0 {
			t.Fatalf("exit %d\n%s", exit, out)
		}
	}
	raw, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var older, newer receiptlog.Checkpoint
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	decode(t, jwsIn(t, lines[0]), 1, &older)
	decode(t, jwsIn(t, lines[1]), 1, &newer)
	if older.Size >= newer.Size {
		t.Errorf("%+v, %+v", older, newer)
	}
	keys, _ := hotel.call(t, "/jwks.json", nil)
	if err := os.WriteFile(jwks, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[string]int{public: 0, strings.TrimSpace(stranger): 1} {
		out, exit := p.run(t, "", "verify", "log", seen, "--jwks", jwks, "--issuer", hotel.Issuer, "--witness", by)
		if exit != want || !strings.Contains(out, " witness ") {
			t.Errorf("exit %d, want %d\n%s", exit, want, out)
		}
	}
	bare := filepath.Join(folder, "bare")
	if err := os.WriteFile(bare, []byte(jwsIn(t, lines[1])), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, exit := p.run(t, "", "verify", "log", bare, "--jwks", jwks, "--issuer", hotel.Issuer, "--witness", public); exit != 1 {
		t.Errorf("without the witness: exit %d\n%s", exit, out)
	}
	g := newGiven(t)
	proof, _ := hotel.call(t, fmt.Sprintf("/log/consistency?from=%d&to=%d", older.Size, newer.Size), nil)
	f := files{"jwks": keys, "older": lines[0], "newer": lines[1], "consistency": proof}
	args := []string{"log", "newer", "--checkpoint", "older", "--consistency", "consistency", "--jwks", "jwks", "--issuer", hotel.Issuer}
	if said, exit := g.run(f, args...); exit != 0 {
		t.Errorf("the script: exit %d, %s", exit, said)
	}
}
