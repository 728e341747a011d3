package pa

import (
	"encoding/json"
	"net/http"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// oauthError is what the agent makes of an error answer.
func oauthError(code, description string) Refusal {
	body, err := json.Marshal(map[string]string{"error": code, "error_description": description})
	if err != nil {
		panic(err)
	}
	return refusal(discovery.Answer{Status: http.StatusBadRequest, Body: body})
}
