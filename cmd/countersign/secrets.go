package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runSecrets(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "secrets", about: "rewrap",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{"rewrap": rewrapSecrets},
	}.run(ctx, argv, stdout, stderr)
}

// rewrapSecrets brings every stored secret under Vault's newest sealing key,
// also those that were sealed under the master key before the move to Vault.
func rewrapSecrets(ctx context.Context, pool *pgxpool.Pool, a args) error {
	master, err := signing.OpenMaster(a.masterFile)
	if err != nil {
		return err
	}
	if err := distinct(a.vault, a.former); err != nil {
		return err
	}
	vault, err := a.vault.open(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer vault.Close()
	var previous tenants.Sealer = master
	former, err := a.former.open(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if former != nil {
		defer former.Close()
		previous = former.Sealer(master)
	}
	db := tenants.NewDB(pool)
	ids, err := tenants.NewDirectory(db, time.Now).IDs(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, id := range ids {
		n, err := tenants.Rewrap(ctx, db, vault.Sealer(previous), id)
		total += n
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "%d secrets of %d Brands are under the newest key now\n", total, len(ids))
	return nil
}
