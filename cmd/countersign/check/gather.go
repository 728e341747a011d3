package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"countersign.dev/authority/verify"
	"countersign.dev/cmd/countersign/pa/discovery"
)

// maxFile is far above any token file, and far below what would hurt.
const maxFile = 1 << 20

// subject is everything a verdict needs, gathered.
type subject struct {
	token            string
	keys             verify.Keys
	issuer, audience string

	status string // the status list; empty: none was given

	paJWT      string // empty: none was given
	paKeys     *verify.Keys
	paAudience string

	now time.Time
}

func gather(ctx context.Context, a arguments, stdin io.Reader) (subject, error) {
	s := subject{issuer: a.issuer, audience: a.audience, paAudience: a.paAudience, now: a.at}
	if s.now.IsZero() {
		s.now = time.Now()
	}
	var client discovery.Client
	jwks := a.jwks
	if a.card != "" {
		brand, err := client.Find(ctx, a.card, a.allowSplit)
		if err != nil {
			return s, err
		}
		s.issuer, s.audience = cmp.Or(s.issuer, brand.Issuer), cmp.Or(s.audience, brand.Interface)
		jwks = cmp.Or(jwks, brand.JWKS)
	}
	var err error
	if s.keys, err = readKeys(ctx, client, "the Brand's keys", jwks); err != nil {
		return s, err
	}
	data, err := readFile(a.file, stdin)
	if err != nil {
		return s, fmt.Errorf("read the token: %w", err)
	}
	if s.token, err = findToken(data, s.issuer, s.audience); err != nil {
		return s, err
	}
	if err := s.gatherStatus(a); err != nil {
		return s, err
	}
	return s, s.gatherAgent(ctx, client, a)
}

// gatherStatus reads a saved list. An empty file is no list that was looked at.
func (s *subject) gatherStatus(a arguments) error {
	if a.status == "" {
		return nil
	}
	data, err := readFile(a.status, nil)
	if s.status = strings.TrimSpace(string(data)); err == nil && s.status == "" {
		err = fmt.Errorf("%s is empty", a.status)
	}
	if err != nil {
		return fmt.Errorf("read the status list: %w", err)
	}
	return nil
}

func (s *subject) gatherAgent(ctx context.Context, client discovery.Client, a arguments) error {
	if a.paJWT == "" {
		return nil
	}
	s.paJWT = a.paJWT
	if !isJWT(a.paJWT) {
		data, err := readFile(a.paJWT, nil)
		if err != nil {
			return fmt.Errorf("read the pa-jwt: %w", err)
		}
		s.paJWT = bare(string(data))
	}
	if a.paJWKS == "" {
		return nil
	}
	keys, err := readKeys(ctx, client, "the agent's keys", a.paJWKS)
	if err != nil {
		return err
	}
	s.paKeys = &keys
	return nil
}

// isJWT tells a token from the name of a file: it begins with the base64url of `{"`.
func isJWT(s string) bool { return strings.HasPrefix(s, "eyJ") }

// readKeys takes a URL or a file.
func readKeys(ctx context.Context, client discovery.Client, what, from string) (verify.Keys, error) {
	var data []byte
	var err error
	if strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://") {
		if _, err = discovery.Address(what, from); err == nil {
			data, err = client.Get(ctx, what, from)
		}
	} else {
		data, err = readFile(from, nil)
	}
	if err != nil {
		return verify.Keys{}, err
	}
	keys, err := verify.ParseKeys(data)
	if err != nil {
		return verify.Keys{}, fmt.Errorf("read %s from %s: %w", what, from, err)
	}
	return keys, nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" || stdin == nil {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, err
}
