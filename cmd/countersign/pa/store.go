package pa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"countersign.dev/cmd/countersign/filelock"
)

// Store is the file an agent keeps its tokens in: JSON, by the Brand's issuer and
// then by the agent's user. A lock beside it keeps processes from undoing one
// another's refresh.
type Store struct{ Path string }

type shelf map[string]map[string]Tokens

// Ready checks that tokens can be stored.
func (s Store) Ready(ctx context.Context) error {
	return s.locked(ctx, func() error {
		all, err := s.read()
		if err != nil {
			return err
		}
		return s.write(all)
	})
}

// Put stores tokens in place of those for the same issuer and user.
func (s Store) Put(ctx context.Context, t Tokens) error {
	return s.locked(ctx, func() error { return s.put(t) })
}

func (s Store) put(t Tokens) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	if all[t.Issuer] == nil {
		all[t.Issuer] = map[string]Tokens{}
	}
	all[t.Issuer][t.Sub] = t
	return s.write(all)
}

func (s Store) remove(t Tokens) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	delete(all[t.Issuer], t.Sub)
	if len(all[t.Issuer]) == 0 {
		delete(all, t.Issuer)
	}
	return s.write(all)
}

// Which names a stored token: by issuer, or by anything a person may call the
// Brand – its card or its interface URL. An empty Sub fits any.
type Which struct{ Issuer, Card, Sub string }

func (w Which) fits(t Tokens) bool {
	if w.Sub != "" && w.Sub != t.Sub || w.Issuer != "" && w.Issuer != t.Issuer {
		return false
	}
	card := strings.TrimRight(w.Card, "/")
	return card == "" || card == t.Card || card == strings.TrimRight(t.Interface, "/") ||
		card+"/.well-known/agent-card.json" == t.Card
}

// Find returns the one stored token that fits.
func (s Store) Find(which Which) (Tokens, error) {
	all, err := s.read()
	if err != nil {
		return Tokens{}, err
	}
	var found []Tokens
	for _, users := range all {
		for _, t := range users {
			if which.fits(t) {
				found = append(found, t)
			}
		}
	}
	switch len(found) {
	case 0:
		return Tokens{}, fmt.Errorf("%w in %s that fits", ErrNoToken, s.Path)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, t := range found {
		names = append(names, fmt.Sprintf("%s for %s", t.Interface, t.Sub))
	}
	slices.Sort(names)
	return Tokens{}, fmt.Errorf("%w: %s", ErrAmbiguous, strings.Join(names, ", "))
}

func (s Store) read() (shelf, error) {
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return shelf{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the token file: %w", err)
	}
	all := shelf{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read the token file %s: not what an agent wrote", s.Path)
	}
	return all, nil
}

func (s Store) write(all shelf) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(s.Path, append(data, '\n'), 0o600)
}

// locked runs do while no other process does.
func (s Store) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("make room for the token file: %w", err)
	}
	release, err := filelock.Take(ctx, s.Path+".lock")
	if err != nil {
		return fmt.Errorf("lock the token file: %w", err)
	}
	defer release()
	return do()
}
