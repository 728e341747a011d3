package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// Sign sets the headers of Standard Webhooks: a MAC of id, time and body under
// each key that is in force, so that a receiver may know either.
func Sign(h http.Header, keys []tenants.WebhookKey, id uuid.UUID, now time.Time, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, k := range keys {
		if !k.Until.IsZero() && !now.Before(k.Until) {
			continue
		}
		mac := hmac.New(sha256.New, k.Key)
		fmt.Fprintf(mac, "%s.%s.", id, at)
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set("Webhook-Id", id.String())
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}
