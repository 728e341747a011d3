package verify

import (
	"fmt"
	"time"
)

// skew is how far the clocks of issuer and verifier may be apart (M5).
const skew = 30 * time.Second

// notExpired refuses from the very second of exp on; grace moves that second.
func notExpired(claims members, now time.Time, grace time.Duration) (time.Time, error) {
	exp, err := claims.instant("exp")
	if err != nil {
		return exp, err
	}
	if !now.Before(exp.Add(grace)) {
		return exp, fmt.Errorf("%w: at %s, and it is %s", ErrExpired, stamp(exp), stamp(now))
	}
	return exp, nil
}

// notFromTheFuture allows a clock that runs ahead by skew, and honours nbf where
// it is there.
func notFromTheFuture(claims members, now time.Time) (time.Time, error) {
	iat, err := claims.instant("iat")
	if err != nil {
		return iat, err
	}
	if iat.After(now.Add(skew)) {
		return iat, fmt.Errorf("%w: issued %s, and it is %s", ErrNotYetValid, stamp(iat), stamp(now))
	}
	if _, there := claims["nbf"]; !there {
		return iat, nil
	}
	nbf, err := claims.instant("nbf")
	if err != nil {
		return iat, err
	}
	if nbf.After(now.Add(skew)) {
		return iat, fmt.Errorf("%w: not before %s, and it is %s", ErrNotYetValid, stamp(nbf), stamp(now))
	}
	return iat, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
