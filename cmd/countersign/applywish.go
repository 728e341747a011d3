package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wishes are what the file wants of domains, webhooks, members and API keys, shown.
func (a args) wishes(ctx context.Context, pool *pgxpool.Pool, p *plan) error {
	all, err := p.Wishes(ctx, tenants.NewDB(pool), p.site, time.Now())
	for _, w := range all {
		fmt.Fprintln(a.out, w.Say)
	}
	p.wishes = all
	return errors.Join(err, p.CheckDomains(ctx, operatorEdits(pool), p.site, a.asOperator))
}

// grant makes the wishes true as far as that is the operator's, and asks an owner for
// the others. What needs no owner comes first.
func (a args) grant(ctx context.Context, pool *pgxpool.Pool, wishes []tenants.Wish) error {
	edit := operatorEdits(pool)
	asked := slices.DeleteFunc(slices.Clone(wishes), func(w tenants.Wish) bool { return w.Ask == nil })
	for _, w := range wishes {
		if w.Ask == nil {
			if _, err := w.Do(ctx, nil, edit); err != nil {
				return fmt.Errorf("%s: %w", w.Say, err)
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	asks, err := a.asks(pool)
	if err != nil {
		return err
	}
	for _, w := range asked {
		if a.asOperator && w.Do != nil {
			said, err := w.Do(ctx, asks, edit)
			if err == nil && said != "" {
				_, err = fmt.Fprintln(a.out, said)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w.Say, err)
			}
			continue
		}
		p, err := w.Ask(ctx, asks, edit, "operator", "cli")
		if err != nil {
			return fmt.Errorf("%s: %w", w.Say, err)
		}
		if err := waits(a.out, p, nil); err != nil {
			return err
		}
	}
	return nil
}

// asksOwner reports whether an owner is asked for one of them.
func asksOwner(wishes []tenants.Wish) bool {
	return slices.ContainsFunc(wishes, func(w tenants.Wish) bool { return w.Ask != nil })
}

// showsElse says whether the file has another logo, and which.
func (a args) showsElse(ctx context.Context, pool *pgxpool.Pool, p *plan) (err error) {
	p.shows, p.picture, err = p.LogoFrom(ctx, tenants.NewDB(pool), a.beside)
	if err == nil && p.shows {
		fmt.Fprintln(a.out, "logo:", map[bool]string{true: "another", false: "none"}[len(p.picture) > 0])
	}
	return err
}

// beside reads the picture that file:PATH names; a path that is not absolute begins
// where the Brand's file is.
func (a args) beside(reference string) ([]byte, error) {
	at, ok := strings.CutPrefix(reference, "file:")
	if !ok || at == "" {
		return nil, errors.New("logo: write file:PATH, or leave it as brand show writes it")
	}
	if !filepath.IsAbs(at) && a.file != "-" {
		at = filepath.Join(filepath.Dir(a.file), at)
	}
	f, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("logo: %w", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, tenants.LargestLogo+1))
}

// showIt makes the picture the Brand's logo, or takes the logo away.
func showIt(ctx context.Context, pool *pgxpool.Pool, brand tenants.BrandID, raw []byte) error {
	if len(raw) == 0 {
		return tenants.RemoveLogo(ctx, operatorEdits(pool), brand)
	}
	return tenants.SetLogo(ctx, operatorEdits(pool), brand, raw)
}
