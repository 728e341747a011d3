package agent

import "strings"

// maxToken bounds what a stranger can make us read.
const maxToken = 8 << 10

// Bearer takes the token out of the values of an Authorization header.
//
// There must be exactly one value: with two, we might verify one and somebody
// behind us believe the other. What is returned is not looked at beyond its
// length.
func Bearer(authorization []string) (string, error) {
	if len(authorization) != 1 {
		return "", ErrBearer
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrBearer
	}
	if len(token) > maxToken {
		return "", ErrTooLong
	}
	return token, nil
}
