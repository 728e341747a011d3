package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/language"
)

// Settings is what a Brand changes by itself and at once, but for its KeyRule. What decides where
// people log in and where tokens are good is not among it: see Interface and
// Connection.
type Settings struct {
	Name        string `json:"name" db:"name"`
	Description string `json:"description" db:"description"`
	Colour      string `json:"colour" db:"colour"`
	SupportURL  string `json:"support_url" db:"support_url"`
	PrivacyURL  string `json:"privacy_url" db:"privacy_url"`
	// ConnectedURL is where a person goes on after a decision in assertion mode.
	ConnectedURL string `json:"connected_url" db:"connected_url"`
	// Languages are those in which every scope has the Brand's own words, beside
	// the one it writes first.
	Languages      []string `json:"languages" db:"languages"`
	IdentityScheme string   `json:"identity_scheme" db:"identity_scheme"`
	TokenSeconds   int      `json:"token_seconds" db:"token_seconds"`
	GraceSeconds   int      `json:"grace_seconds" db:"grace_seconds"`
	GrantDays      []int    `json:"grant_days" db:"grant_days"`
	GrantDefault   int      `json:"grant_days_default" db:"grant_days_default"`
	SigningAlg     string   `json:"signing_alg" db:"signing_alg"`
	RotationDays   int      `json:"rotation_days" db:"rotation_days"`
	IdleDays       int      `json:"idle_days" db:"idle_days"`
	SkipConsent    bool     `json:"skip_consent" db:"skip_consent"`
	// Agents is who may ask: those on the Brand's list, every registered one that
	// it has not refused, or any that can be discovered besides.
	Agents string `json:"agents" db:"agents"`
}

// Which agents may ask.
const (
	AgentsListed     = "listed"
	AgentsRegistered = "registered"
	AgentsOpen       = "open"
)

// Site is where we ourselves are.
type Site struct {
	PublicURL string // our origin, without a slash at the end
	// AllowLoopback takes http on this machine for a proven place: development.
	AllowLoopback bool
}

// The longest texts that fit where they are shown.
const (
	longestName        = 80
	longestDescription = 300
	longestURL         = 2048
	mostLanguages      = 20
)

// SettingsOf returns the Brand's settings, or ErrNoBrand.
func SettingsOf(ctx context.Context, db *DB, brand BrandID) (Settings, error) {
	s, err := One[Settings](ctx, db, brand, selectSettings, pgx.NamedArgs{"brand": brand})
	if errors.Is(err, pgx.ErrNoRows) {
		return Settings{}, ErrNoBrand
	}
	if err != nil {
		return Settings{}, fmt.Errorf("load settings of %s: %w", brand, err)
	}
	return s, nil
}

const selectSettings = `
	SELECT name, description, colour, support_url, privacy_url, connected_url, languages, identity_scheme,
	       token_seconds, grace_seconds, grant_days, grant_days_default, signing_alg, rotation_days, idle_days, skip_consent, agents
	  FROM brands
	 WHERE id = @brand`

// ChangeSettings lets fn change the Brand's settings and returns them as they
// are then. Mistakes are Problems, all at once, and change nothing; those that fn
// returns, of what it could not read, are told with the rest. Another KeyRule is such
// a mistake.
func ChangeSettings(ctx context.Context, edit Editor, site Site, brand BrandID, fn func(*Settings) error) (Settings, error) {
	return edit.settings(ctx, site, brand, false, fn)
}

// ChangeAllSettings is ChangeSettings for the operator, and for an owner who has just
// touched their passkey: it changes the KeyRule too.
func ChangeAllSettings(ctx context.Context, edit Editor, site Site, brand BrandID, fn func(*Settings) error) (Settings, error) {
	return edit.settings(ctx, site, brand, true, fn)
}

func (edit Editor) settings(ctx context.Context, site Site, brand BrandID, keys bool, fn func(*Settings) error) (Settings, error) {
	var after Settings
	err := edit.change(ctx, brand, "change settings", func(e *Edit) error {
		var err error
		after, err = e.changeSettings(ctx, site, keys, fn)
		return err
	})
	return after, err
}

// Version changes with any of the settings.
func (s Settings) Version() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain values
	}
	return thumb(raw)
}

func (e *Edit) changeSettings(ctx context.Context, site Site, keys bool, fn func(*Settings) error) (Settings, error) {
	rows, err := e.Query(ctx, selectSettings, pgx.NamedArgs{"brand": e.Brand})
	if err != nil {
		return Settings{}, err
	}
	before, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Settings])
	if err != nil {
		return Settings{}, err
	}
	after := before.copied()
	var unread Problems
	if err := fn(&after); err != nil && !errors.As(err, &unread) {
		return Settings{}, err
	}
	after.tidy()
	hosts, err := e.proven(ctx)
	if err != nil {
		return Settings{}, err
	}
	problems := append(unread, after.check(site, hosts, before).without(unread)...)
	problems = append(problems, opening(before, after)...)
	if !slices.Equal(before.Languages, after.Languages) {
		scopes, err := e.scopes(ctx)
		if err != nil {
			return Settings{}, err
		}
		types, err := e.detailTypes(ctx)
		if err != nil {
			return Settings{}, err
		}
		problems = append(problems, untranslated(scopes, after.Languages)...)
		problems = append(problems, untranslatedTypes(types, onCard(scopes), after.Languages)...)
	}
	if len(problems) == 0 && !keys {
		problems = keysAside(before, after)
	}
	if len(problems) > 0 {
		return Settings{}, problems
	}
	if !e.noteDiff("brand.settings", nil, before, after) {
		return after, nil // twice is once
	}
	const q = `
		UPDATE brands
		   SET name = @name, description = @description, colour = @colour, support_url = @support,
		       privacy_url = @privacy, connected_url = @connected, languages = @languages,
		       identity_scheme = @scheme, token_seconds = @token, grace_seconds = @grace,
		       grant_days = @days, grant_days_default = @default, signing_alg = @alg,
		       rotation_days = @rotation, idle_days = @idle, skip_consent = @skip, agents = @agents,
		       resumed_at = CASE WHEN agents <> @agents THEN @now ELSE resumed_at END
		 WHERE id = @brand`
	_, err = e.Exec(ctx, q, pgx.NamedArgs{
		"brand": e.Brand, "name": after.Name, "description": after.Description, "colour": after.Colour,
		"support": after.SupportURL, "privacy": after.PrivacyURL, "connected": after.ConnectedURL,
		"languages": after.Languages, "scheme": after.IdentityScheme, "token": after.TokenSeconds,
		"grace": after.GraceSeconds, "days": after.GrantDays, "default": after.GrantDefault,
		"alg": after.SigningAlg, "rotation": after.RotationDays, "idle": after.IdleDays, "skip": after.SkipConsent, "agents": after.Agents,
		"now": e.Now,
	})
	return after, err
}

// tidy brings what is meant alike into one form.
func (s *Settings) tidy() {
	s.Colour = strings.ToLower(s.Colour)
	if s.Languages == nil {
		s.Languages = []string{}
	}
	if s.GrantDays == nil {
		s.GrantDays = []int{}
	}
	slices.Sort(s.GrantDays)
}

// check returns every mistake in the settings. hosts are the domains that the
// Brand has proved, and before is how the settings stand.
func (s Settings) check(site Site, hosts Hosts, before Settings) Problems {
	p := s.checkLook()
	p = append(p, s.checkLinks(site, hosts, before)...)
	p = append(p, s.checkLanguages()...)
	p = append(p, s.checkTimes()...)
	return append(p, s.checkAgents()...)
}

var colourForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// checkLook is about what people see. The colour's contrast is no mistake: it is
// corrected where it is shown.
func (s Settings) checkLook() Problems {
	var p Problems
	p.words("name", s.Name, 1, longestName)
	p.words("description", s.Description, 0, longestDescription)
	if !colourForm.MatchString(s.Colour) {
		p.add("colour", "is no colour of the form #rrggbb", "write it like #1f3a5f")
		p.kind(NoColour)
	}
	return p
}

func (s Settings) checkLinks(site Site, hosts Hosts, before Settings) Problems {
	var p Problems
	for _, link := range []struct{ field, url, before string }{
		{"support_url", s.SupportURL, before.SupportURL},
		{"privacy_url", s.PrivacyURL, before.PrivacyURL},
		{"connected_url", s.ConnectedURL, before.ConnectedURL},
	} {
		switch link.url {
		case "":
		case link.before:
			p.link(link.field, link.url, site, hosts.ever())
		default:
			p.link(link.field, link.url, site, hosts)
		}
	}
	return p
}

func (s Settings) checkLanguages() Problems {
	var p Problems
	if len(s.Languages) > mostLanguages {
		p.add("languages", "are too many", "name "+count(mostLanguages)+" at most")
		p.kind(TooMany, count(mostLanguages))
	}
	seen := make(map[string]bool)
	for _, tag := range s.Languages {
		p.tag("languages", tag)
		if seen[tag] {
			p.add("languages", tag+" stands there twice", "take one away")
			p.kind(Twice, tag)
		}
		seen[tag] = true
	}
	return p
}

// tag checks a language tag. One language has one way of being written, or
// translations would not be found.
func (p *Problems) tag(field, tag string) {
	t, err := language.Parse(tag)
	switch {
	case err != nil || tag == "":
		p.add(field, "holds something that is no language tag", "use tags of BCP 47, such as de or zh-Hant")
		p.kind(NoTag)
	case t.String() != tag:
		p.add(field, "writes "+t.String()+" in another way", "write "+t.String())
		p.kind(OtherTag, t.String())
	}
}

// checkTimes keeps out what has made other servers' clients spin or their tokens
// immortal (B16).
func (s Settings) checkTimes() Problems {
	const mostChoices, longestDays = 6, 366
	var p Problems
	p.between("token_seconds", s.TokenSeconds, 60, 3600, "seconds")
	p.between("grace_seconds", s.GraceSeconds, 0, 120, "seconds")
	p.between("rotation_days", s.RotationDays, 1, longestDays, "days")
	p.between("idle_days", s.IdleDays, 1, longestDays, "days")
	if n := len(s.GrantDays); n < 1 || n > mostChoices {
		p.add("grant_days", "are no choice that fits the page", "give 1 to "+count(mostChoices)+" numbers of days")
		p.kind(NoChoices, count(mostChoices))
	}
	for i, days := range s.GrantDays {
		p.between("grant_days", days, 1, longestDays, "days each")
		if i > 0 && s.GrantDays[i-1] == days {
			p.add("grant_days", "hold "+count(days)+" twice", "take one away")
			p.kind(Twice, count(days))
		}
	}
	if !slices.Contains(s.GrantDays, s.GrantDefault) {
		p.add("grant_days_default", "is none of the choices", "name one of grant_days")
		p.kind(NoneOfThem)
	}
	p.oneOf("signing_alg", s.SigningAlg, "ES256", "RS256")
	return p
}

func (s Settings) checkAgents() Problems {
	var p Problems
	p.oneOf("identity_scheme", s.IdentityScheme, "paJwt", "platformJwt")
	p.oneOf("agents", s.Agents, AgentsListed, AgentsRegistered, AgentsOpen)
	return p
}

// untranslated tells which scopes lack the Brand's words in which of the
// languages.
func untranslated(scopes []StoredScope, languages []string) Problems {
	var p Problems
	for _, s := range scopes {
		for _, tag := range languages {
			text := s.Texts[tag]
			if s.RetiredAt == nil && (text.Description == "" || s.Undo != "" && text.Undo == "") {
				p.add("languages", "scope "+s.ID+" has no words in "+tag, "translate the scope first, its undo too")
				p.kind(Untranslated, s.ID, tag)
			}
		}
	}
	return p
}

// Stop is the kill switch: agents hear temporarily_unavailable until Start,
// grants are kept. Twice is once.
func Stop(ctx context.Context, edit Editor, brand BrandID) error {
	return switchTo(ctx, edit, brand, Paused, "brand.paused")
}

// Start undoes Stop. That no agent came meanwhile is not held against it.
func Start(ctx context.Context, edit Editor, brand BrandID) error {
	return switchTo(ctx, edit, brand, Active, "brand.resumed")
}

// startShown is Start after the pause that somebody saw; a later one is ErrChangeStale.
func startShown(ctx context.Context, edit Editor, brand BrandID, pauses int) error {
	const q = `SELECT state = 'paused' AND pauses <> @pauses FROM brands WHERE id = @brand`
	return edit.change(ctx, brand, "brand.resumed", func(e *Edit) error {
		var other bool
		err := e.QueryRow(ctx, q, pgx.NamedArgs{"brand": brand, "pauses": pauses}).Scan(&other)
		if err == nil && other {
			err = ErrChangeStale
		}
		if err != nil {
			return err
		}
		return e.switchTo(ctx, Active, "brand.resumed")
	})
}

func switchTo(ctx context.Context, edit Editor, brand BrandID, state State, event string) error {
	return edit.change(ctx, brand, event, func(e *Edit) error { return e.switchTo(ctx, state, event) })
}

func (e *Edit) switchTo(ctx context.Context, state State, event string) error {
	const since = `UPDATE brands SET resumed_at = @now WHERE id = @brand`
	changed, err := SetStateIn(ctx, e.Tx, e.Brand, state)
	if err != nil || !changed {
		return err
	}
	e.Note(event, nil)
	if state == Active {
		_, err = e.Exec(ctx, since, pgx.NamedArgs{"brand": e.Brand, "now": e.Now})
	}
	return err
}
