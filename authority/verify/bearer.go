package verify

import (
	"fmt"
	"strings"
)

// delegationHeader is where the delegation token travels, as Go spells it.
const delegationHeader = "X-A2a-User-Delegation"

// bearer takes the token out of the values of a header. There must be exactly one
// value: with two, we might verify one and somebody behind us believe the other.
// The scheme is compared without regard to case.
func bearer(values []string) (string, error) {
	if len(values) != 1 {
		return "", fmt.Errorf("%w: %d values", ErrBearer, len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrBearer
	}
	return token, nil
}
