package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"countersign.dev/tenants"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Consent is one answer that made or changed a grant, in the words in which it
// was given.
type Consent struct {
	At       time.Time
	Answer   string      // allowed, emptied or continued
	Language string      // BCP 47, of the words
	Allowed  []SeenScope // what the answer let the agent do, in the order it was shown
	Days     int         // how long, as chosen then; 0: not asked
}

// Consents returns what the Brand user answered about a grant of theirs, the
// newest first. For another's or an unknown grant there is none.
func (a *Authority) Consents(ctx context.Context, brand tenants.BrandID, subject string, grant uuid.UUID) ([]Consent, error) {
	const q = `
		SELECT at, answer, record FROM consents
		 WHERE brand_id = @brand AND grant_id = @grant AND subject = @subject
		 ORDER BY at DESC, id DESC`
	type row struct {
		At     time.Time
		Answer string
		Record json.RawMessage
	}
	rows, err := tenants.All[row](ctx, a.db, brand, q, pgx.NamedArgs{"brand": brand, "grant": grant, "subject": subject})
	if err != nil {
		return nil, fmt.Errorf("list consents at %s: %w", brand, err)
	}
	out := make([]Consent, 0, len(rows))
	for _, r := range rows {
		var seen consentRecord
		if err := json.Unmarshal(r.Record, &seen); err != nil {
			return nil, fmt.Errorf("read a consent at %s: %w", brand, err)
		}
		c := Consent{At: r.At, Answer: r.Answer, Language: seen.Language, Days: seen.ForDays}
		for _, s := range seen.Scopes {
			if slices.Contains(seen.Ticked, s.ID) {
				c.Allowed = append(c.Allowed, s)
			}
		}
		out = append(out, c)
	}
	return out, nil
}
