package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign.dev/authority"
	"countersign.dev/authority/signing"
	"countersign.dev/consent/federation/demoidp"
	"countersign.dev/tenants"
	"github.com/google/uuid"
)

// The demo's fixed ids; scripts may rely on them.
const (
	demoHotel     tenants.BrandID = "harbor-hotel"
	demoOutfitter tenants.BrandID = "fern-and-fell"
	demoProvider                  = "demo"
	// demoAudience is what pa-jwts for the hotel name in aud, as for every hosted
	// Brand; the outfitter sees pa-jwts itself, so its own is good there and nowhere
	// else. Neither changes with the address that dev listens on.
	demoAudience      = "urn:countersign:demo"
	outfitterAudience = "urn:countersign:provider:fern-and-fell"
	demoPassword      = "demo"
	demoClientID      = "countersign"
	demoAgentName     = "Aria"
)

// demoBrand is a Brand of the demo with everything a try needs.
type demoBrand struct {
	brand    tenants.Brand
	audience string // of its Provider
	pages    string // {public}/b/{brand}
	users    []demoUser
	claim    string // the ID-token claim that is the Brand's id of a person
	provider *demoidp.Provider
	apiKey   string
}

type demoUser struct {
	username string
	subject  string // the token's sub
	claims   map[string]any
}

// demoBrands are the hotel, whose interface we serve at the public URL, and the
// outfitter, which serves its own at shop.
func demoBrands(public, shop string) []*demoBrand {
	brand := func(id tenants.BrandID, mode tenants.Mode, url, name, description, colour string, scopes []tenants.Scope) tenants.Brand {
		return tenants.Brand{
			ID: id, Provider: demoProvider, Name: name, Description: description, Mode: mode,
			State: tenants.Active, Delegation: true, InterfaceURL: url, Issuer: url + "/oauth",
			IdentityScheme: "paJwt", Colour: colour, TokenLifetime: 15 * time.Minute, Grace: 30 * time.Second,
			GrantDays: []int{7, 30, 90}, GrantDefault: 30, SigningAlg: string(signing.ES256), RotationDays: 90,
			Scopes: scopes, Proven: true,
		}
	}
	hotel := brand(demoHotel, tenants.Hosted, public+"/a2a/"+string(demoHotel),
		"Harbor Hotel", "Bookings and guest services of Harbor Hotel.", "#0f5c6e", hotelScopes)
	outfitter := brand(demoOutfitter, tenants.Fronted, shop,
		"Fern & Fell Outfitters", "Orders, returns and advice from Fern & Fell.", "#3f6b35", outfitterScopes)
	outfitter.Provider = string(demoOutfitter)
	return []*demoBrand{
		{
			brand: hotel, audience: demoAudience,
			pages: public + "/b/" + string(demoHotel),
			// The hotel's other channels know a guest by a number of their own, not
			// by the id of its login service.
			claim: "guest_number",
			users: []demoUser{
				{"alex", "guest-1001", map[string]any{"guest_number": "guest-1001"}},
				{"sam", "guest-1002", map[string]any{"guest_number": "guest-1002"}},
			},
		},
		{
			brand: outfitter, audience: outfitterAudience,
			pages: public + "/b/" + string(demoOutfitter),
			claim: "sub",
			users: []demoUser{{"alex", "ff-2f81c4", nil}, {"sam", "ff-9b02e7", nil}},
		},
	}
}

var hotelScopes = []tenants.Scope{
	{
		ID: "bookings:read", Description: "See your bookings: dates, room and price", Effect: "sees", Impact: "low",
		Texts: zh("查看您的訂房：日期、房型與價格", ""),
	},
	{
		ID: "bookings:change", Description: "Change or cancel your bookings", Effect: "changes", Impact: "medium",
		Undo:  "A cancelled booking can be restored within 24 hours by calling the front desk.",
		Texts: zh("變更或取消您的訂房", "取消的訂房可在 24 小時內致電櫃檯恢復。"),
	},
	{
		ID: "extras:order", Description: "Order extras to your room and charge them to your bill", Effect: "pays", Impact: "high",
		Undo:  "Extras can be sent back until they are delivered.",
		Texts: zh("訂購客房加購項目並計入您的帳單", "送達前都可以退回。"),
	},
	{
		ID: "profile:read", Description: "See your name, e-mail address and phone number", Effect: "sees", Impact: "low",
		Texts: zh("查看您的姓名、電子郵件與電話號碼", ""),
	},
}

// stayCharge lets an agent ask for extras up to a sum:
//
//	countersign pa login --details '[{"type":"stay_charge","amount":200,"currency":"EUR"}]' …
var stayCharge = tenants.DetailType{
	Type: "stay_charge", Scope: "extras:order",
	Schema: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["amount", "currency"],
		"properties": {
			"amount":   {"type": "number", "exclusiveMinimum": 0},
			"currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
			"until":    {"type": "string", "format": "date"}
		}}`),
	Words: "Up to {amount} {currency} in all[, until {until}]",
	Texts: map[string]string{"zh-Hant": "合計最多 {amount} {currency}[，至 {until} 為止]"},
}

var outfitterScopes = []tenants.Scope{
	{
		ID: "orders:read", Description: "See your orders and where they are", Effect: "sees", Impact: "low",
		Texts: zh("查看您的訂單與配送進度", ""),
	},
	{
		ID: "returns:start", Description: "Start a return and book its pick-up", Effect: "changes", Impact: "medium",
		Undo:  "A return can be called off until it is picked up.",
		Texts: zh("申請退貨並預約取件", "取件前都可以撤回退貨。"),
	},
	{
		ID: "orders:place", Description: "Order things and pay with the card you have saved", Effect: "pays", Impact: "high",
		Undo:  "Orders can be cancelled until they are packed, and returned for 60 days.",
		Texts: zh("下單並以您儲存的信用卡付款", "打包前可取消，60 天內可退貨。"),
	},
}

func zh(description, undo string) map[string]tenants.ScopeText {
	return map[string]tenants.ScopeText{"zh-Hant": {Description: description, Undo: undo}}
}

// identityProvider makes the Brand's OpenID provider, with its own people.
func (d *demoBrand) identityProvider(clientSecret string) (*demoidp.Provider, error) {
	c := demoidp.Config{
		Name: d.brand.Name, Colour: d.brand.Colour, ClientID: demoClientID, ClientSecret: clientSecret,
		RedirectURIs: []string{d.pages + "/callback"},
		Hint:         "Demo: sign in as alex or sam, password demo.",
	}
	for _, u := range d.users {
		subject := u.subject
		if u.claims != nil {
			subject = "login-" + u.username // the login service's own id
		}
		name := map[string]string{"alex": "Alex Rivers", "sam": "Sam Okafor"}[u.username]
		c.Users = append(c.Users, demoidp.User{
			Username: u.username, Password: demoPassword, Subject: subject,
			Name: name, Email: u.username + "@example.com", Claims: u.claims,
		})
	}
	return demoidp.New(c)
}

// seed writes the demo into the database. Every start brings it back to what it
// says here; grants are kept.
func (p *parts) seed(ctx context.Context, brands []*demoBrand, clientSecret string) error {
	now := time.Now()
	if err := tenants.SaveProvider(ctx, p.db, p.hosted, now); err != nil {
		return err
	}
	for _, d := range brands {
		id := d.brand.ID
		if d.brand.Provider != p.hosted.ID {
			own := tenants.Provider{ID: d.brand.Provider, Name: d.brand.Name, Audience: d.audience}
			if err := tenants.SaveProvider(ctx, p.db, own, now); err != nil {
				return err
			}
		}
		if err := p.settle(ctx, &d.brand); err != nil {
			return fmt.Errorf("seed %s: %w", id, err)
		}
		if err := tenants.SaveBrand(ctx, p.db, d.brand, now); err != nil {
			return err
		}
		if err := p.keys.Ensure(ctx, id, p.backend, signing.ES256); err != nil {
			return err
		}
		// A fresh Vault over old data lacks the key that the data speak of.
		if err := p.keys.SelfTest(ctx, id); errors.Is(err, signing.ErrNoKey) {
			if err := p.keys.Keep(ctx, id, p.policy(&d.brand)); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		login := tenants.LoginConnection{
			ID:     uuid.NewSHA1(uuid.NameSpaceURL, []byte("countersign demo login "+id)),
			Issuer: d.provider.Issuer(), ClientID: demoClientID, ClientSecret: clientSecret,
			SubjectClaim: d.claim, Scopes: []string{"openid", "profile", "email"},
		}
		if err := tenants.SaveLogin(ctx, p.db, p.sealer, id, login, now); err != nil {
			return fmt.Errorf("seed %s: %w", id, err)
		}
		key, err := p.devAPIKey(ctx, id, "countersign dev", tenants.Rights()...)
		if err != nil {
			return fmt.Errorf("seed %s: %w", id, err)
		}
		d.apiKey = key
		p.brands.Forget(id)
	}
	return tenants.SaveDetailType(ctx, p.authority.Editor(authority.ByOperator()), demoHotel, stayCharge)
}

// settle moves a Brand that stands elsewhere from a former start, such as at a port
// that somebody else has now: what people allowed there ends, as it would for any
// Brand.
func (p *parts) settle(ctx context.Context, b *tenants.Brand) error {
	before, err := tenants.InterfaceOf(ctx, p.db, b.ID)
	if errors.Is(err, tenants.ErrNoBrand) {
		return nil
	}
	if err != nil {
		return err
	}
	if before.Mode == b.Mode && before.URL == b.InterfaceURL {
		return nil
	}
	to := tenants.Interface{Mode: b.Mode, URL: b.InterfaceURL, Provider: b.Provider}
	return tenants.SetInterface(ctx, p.authority.Editor(authority.ByOperator()), p.site(), b.ID, to, string(b.ID), true)
}

// demoOwner is whose the demo Brands are on the dashboard.
const demoOwner = "owner@demo.example"

// ownerLink makes a link that works once: whoever opens it owns the demo Brands.
// A passkey cannot be seeded, since only a browser can make one.
func (p *parts) ownerLink(ctx context.Context, brands []*demoBrand) (string, error) {
	var data tenants.LinkData
	for _, b := range brands {
		data.Brands = append(data.Brands, b.brand.ID)
	}
	token, err := tenants.IssueLink(ctx, p.db, tenants.LinkDemo, demoOwner, data, time.Now())
	if err != nil {
		return "", err
	}
	return p.console.LinkURL(token), nil
}
