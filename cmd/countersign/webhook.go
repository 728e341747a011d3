package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/events"
	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
	"github.com/jackc/pgx/v5/pgxpool"
)

func runWebhook(ctx context.Context, argv []string, _ io.Reader, stdout, stderr io.Writer) int {
	return operation{
		noun: "webhook", about: "create | list | rotate | disable | enable | test | deliveries | replay --brand ID [--url URL --events grant.revoked,… --format json|set] [--id ID] [--as-operator]",
		verbs: map[string]func(context.Context, *pgxpool.Pool, args) error{
			"create": createWebhook, "list": listWebhooks, "rotate": rotateWebhook,
			"disable": disableWebhook, "enable": enableWebhook,
			"deliveries": listDeliveries, "replay": replayDelivery, "test": testWebhook,
		},
	}.run(ctx, argv, stdout, stderr)
}

func disableWebhook(ctx context.Context, pool *pgxpool.Pool, a args) error {
	return tenants.EnableWebhook(ctx, operatorEdits(pool), tenants.BrandID(a.brand), a.id, false, "turned off by an operator")
}

// enableWebhook turns it on again: now, as the operator, or by asking an owner.
func enableWebhook(ctx context.Context, pool *pgxpool.Pool, a args) error {
	brand := tenants.BrandID(a.brand)
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskWebhookOn(ctx, edit, brand, a.id, "operator", "cli")
		})
	}
	if err := tenants.EnableWebhook(ctx, operatorEdits(pool), brand, a.id, true, ""); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "webhook %s of %s is on; webhook replay sends what it missed\n", a.id, a.brand)
	return nil
}

// flagsWebhook are those of its verbs.
func flagsWebhook(s settings, a *args) {
	s.StringVar(&a.brand, "brand", "", "`id` of the Brand")
	s.StringVar(&a.url, "url", "", "https `URL` that is to be called")
	s.StringVar(&a.events, "events", "", "comma-separated `list` of "+strings.Join(tenants.WebhookEvents(), ", ")+"; empty: all")
	s.StringVar(&a.format, "format", tenants.FormatJSON, "json, or set: Security Event Tokens (RFC 8417, CAEP), signed with the Brand's key")
	s.StringVar(&a.id, "id", "", "`id` of the endpoint, as list shows it; of replay, also that of a delivery")
	s.StringVar(&a.state, "state", "", "deliveries only in this `state`: pending, delivered or dead")
	s.BoolVar(&a.atOnce, "at-once", false, "rotate without a day in which the former secret signs too: somebody else may have it")
	s.BoolVar(&a.dev, "allow-loopback", false, "plain http on this machine, for development")
	a.vault.register(s, "vault")
	s.StringVar(&a.masterFile, "master-key-file", "", "`file` with the service's master key, where a secret is made, or an owner is asked")
}

// withSealer does what needs a secret sealed where the service opens it.
func withSealer(a args, do func(tenants.Sealer) error) error {
	master, err := signing.OpenMaster(a.masterFile)
	if err != nil {
		return err
	}
	vault, err := a.vault.open(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if vault == nil {
		return do(master)
	}
	defer vault.Close()
	return do(vault.Sealer(master))
}

// createWebhook asks an owner, who is shown the secret. As the operator it prints
// the endpoint's id and its secret alone, so that a script can take them; the
// secret is never shown again.
func createWebhook(ctx context.Context, pool *pgxpool.Pool, a args) error {
	var wanted []string
	for name := range strings.SplitSeq(a.events, ",") {
		if name = strings.TrimSpace(name); name != "" {
			wanted = append(wanted, name)
		}
	}
	draft, site := tenants.WebhookDraft{URL: a.url, Events: wanted, Format: a.format}, tenants.Site{AllowLoopback: a.dev}
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskWebhook(ctx, edit, site, tenants.BrandID(a.brand), draft, "operator", "cli")
		})
	}
	return withSealer(a, func(sealer tenants.Sealer) error {
		w, secret, err := tenants.CreateWebhook(ctx, operatorEdits(pool), sealer, site, tenants.BrandID(a.brand), draft)
		if err == nil {
			_, err = fmt.Fprintln(a.out, w.ID, secret)
		}
		return err
	})
}

func rotateWebhook(ctx context.Context, pool *pgxpool.Pool, a args) error {
	overlap := tenants.WebhookOverlap
	if a.atOnce {
		overlap = 0
	}
	if !a.asOperator {
		return a.askOwner(pool, func(asks *tenants.Asks, edit tenants.Editor) (tenants.PendingChange, error) {
			return asks.AskWebhookSecret(ctx, edit, tenants.BrandID(a.brand), a.id, "operator", "cli")
		})
	}
	return withSealer(a, func(sealer tenants.Sealer) error {
		secret, err := tenants.RotateWebhook(ctx, operatorEdits(pool), sealer, tenants.BrandID(a.brand), a.id, overlap)
		if err == nil {
			_, err = fmt.Fprintln(a.out, secret)
		}
		return err
	})
}

func listWebhooks(ctx context.Context, pool *pgxpool.Pool, a args) error {
	list, err := tenants.Webhooks(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tENABLED\tCREATED\tFORMAT\tURL\tEVENTS\tNOTE")
	for _, e := range list {
		note := e.Note
		if e.FormerUntil != nil && e.FormerUntil.After(time.Now()) {
			note = "the former secret signs too until " + e.FormerUntil.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%s\t%s\t%s\n", e.ID, e.Enabled, e.CreatedAt.UTC().Format(time.RFC3339), e.Format, e.URL, strings.Join(e.Events, ","), note)
	}
	return w.Flush()
}

func listDeliveries(ctx context.Context, pool *pgxpool.Pool, a args) error {
	const most = 100
	list, err := events.Deliveries(ctx, tenants.NewDB(pool), tenants.BrandID(a.brand), a.id, a.state, most)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tENDPOINT\tSEQ\tEVENT\tSTATE\tATTEMPTS\tLAST\tSTATUS\tNEXT\tERROR")
	for _, d := range list {
		last, status, next := "-", "-", "-"
		if d.LastAt != nil {
			last = d.LastAt.UTC().Format(time.RFC3339)
		}
		if d.LastStatus != nil {
			status = strconv.Itoa(*d.LastStatus)
		}
		if d.State == "pending" {
			next = d.DueAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			d.ID, d.Endpoint, d.Seq, d.Event, d.State, d.Attempts, last, status, next, cmp.Or(d.LastError, "-"))
	}
	return w.Flush()
}

// testWebhook has the service send the endpoint a test.
func testWebhook(ctx context.Context, pool *pgxpool.Pool, a args) error {
	outbox, err := events.NewOutbox(tenants.NewDB(pool), time.Now)
	if err != nil {
		return err
	}
	err = outbox.SendTest(ctx, rules(pool), tenants.BrandID(a.brand), a.id, authority.ByOperator())
	if errors.Is(err, events.ErrOff) {
		return fmt.Errorf("%w: webhook enable comes first", err)
	}
	return err
}

func replayDelivery(ctx context.Context, pool *pgxpool.Pool, a args) error {
	outbox, err := events.NewOutbox(tenants.NewDB(pool), time.Now)
	if err != nil {
		return err
	}
	n, err := outbox.Replay(ctx, tenants.BrandID(a.brand), a.id)
	if errors.Is(err, events.ErrOff) {
		return fmt.Errorf("%w: webhook enable comes first", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%d will be sent again, with the same webhook-id\n", n)
	return err
}
