package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"countersign.dev/authority"
	"countersign.dev/authority/authoritytest"
	"github.com/google/uuid"
)

// Issue 6: what was done under a grant, page after page, as it was signed; of another
// Brand's grant and an unknown one there is nothing.
func TestReceiptsAreListed(t *testing.T) {
	a := newAdmin(t)
	tokens := a.held(a.Hotel, authoritytest.Agent, "guest-7", "bookings:read")
	shop := a.held(a.Shop, authoritytest.Agent, "guest-7", "orders:read")
	signed := make(map[string]bool)
	for n := range 5 {
		r, err := a.rules.Countersign(t.Context(), a.Hotel, authority.Turn{
			Token: tokens.JWS, ContextID: "talk", MessageID: fmt.Sprint("m", n), ScopesUsed: []string{"bookings:read"},
		})
		if err != nil {
			t.Fatal(err)
		}
		signed[r.JWS] = true
	}
	path := "harbor-hotel/grants/" + tokens.GrantID.String() + "/receipts?limit=2"
	last, pages := 5.0, 0
	for cursor := ""; ; pages++ {
		status, page := a.call(http.MethodGet, path+cursor, a.key, "")
		if status != 200 {
			t.Fatal(status, page)
		}
		for _, one := range page["receipts"].([]any) {
			r := one.(map[string]any)
			if r["seq"].(float64) >= last || !signed[r["jws"].(string)] || r["claims"].(map[string]any)["user"] != "guest-7" || r["context_id"] != "talk" {
				t.Errorf("%v", r)
			}
			last = r["seq"].(float64)
			delete(signed, r["jws"].(string))
		}
		next, more := page["next"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(signed) != 0 || pages != 2 {
		t.Errorf("%d are missing, %d pages", len(signed), pages+1)
	}
	for path, want := range map[string]int{
		"grants/" + shop.GrantID.String() + "/receipts": 404, "grants/" + uuid.NewString() + "/receipts": 404, "grants/x/receipts": 404,
		"grants/" + tokens.GrantID.String() + "/receipts?cursor=x": 400, "grants/" + tokens.GrantID.String() + "/receipts?before=x": 400,
	} {
		if status, _ := a.call(http.MethodGet, "harbor-hotel/"+path, a.key, ""); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
}
