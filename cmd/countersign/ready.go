package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"countersign.dev/cmd/countersign/pa"
	"countersign.dev/cmd/countersign/shell"
)

// readiness is what --ready-file holds.
type readiness struct {
	PublicURL    string       `json:"public_url"`
	DatabaseURL  string       `json:"database_url"`
	MasterKey    string       `json:"master_key_file"` // for commands that seal a secret
	DashboardURL string       `json:"dashboard_url"`
	ConsoleLink  string       `json:"console_link"` // owns the demo Brands; works once
	MailURL      string       `json:"mail_url"`     // what would have been mailed
	Brands       []readyBrand `json:"brands"`
	Agent        readyAgent   `json:"agent"`
}

type readyBrand struct {
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	InterfaceURL string      `json:"interface_url"`
	CardURL      string      `json:"card_url"`
	Issuer       string      `json:"issuer"`
	Audience     string      `json:"audience"` // of pa-jwts for this Brand
	IDPIssuer    string      `json:"idp_issuer"`
	APIKey       string      `json:"api_key"` // the Brand's own credential, with every right
	Users        []readyUser `json:"users"`

	metadataURL, jwksURL, devicePage string
}

type readyUser struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Subject  string `json:"subject"` // the sub of tokens for this person
}

type readyAgent struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
	KeyFile string `json:"key_file"`
}

func describe(publicURL, databaseURL string, brands []*demoBrand, identity *pa.Identity, data string) readiness {
	r := readiness{
		PublicURL: publicURL, DatabaseURL: databaseURL, MasterKey: filepath.Join(data, "master.key"), DashboardURL: publicURL + "/console",
		Agent: readyAgent{
			Issuer: identity.Issuer, JWKSURI: identity.JWKSURI, KeyFile: filepath.Join(data, "agent", "key.json"),
		},
	}
	for _, d := range brands {
		b := readyBrand{
			ID: string(d.brand.ID), Name: d.brand.Name, InterfaceURL: d.brand.InterfaceURL, CardURL: d.brand.CardURL(),
			Issuer: d.brand.Issuer, Audience: d.audience, IDPIssuer: d.provider.Issuer(), APIKey: d.apiKey,
			metadataURL: d.brand.MetadataURL(), jwksURL: d.brand.JWKSURI(), devicePage: d.pages + "/device",
		}
		for _, u := range d.users {
			b.Users = append(b.Users, readyUser{Username: u.username, Password: demoPassword, Subject: u.subject})
		}
		r.Brands = append(r.Brands, b)
	}
	return r
}

// answers asks every server once, so that "ready" is never a guess.
func (r readiness) answers(ctx context.Context) error {
	urls := []string{r.PublicURL + "/readyz", r.DashboardURL, r.Agent.JWKSURI}
	for _, b := range r.Brands {
		urls = append(urls, b.CardURL, b.metadataURL, b.jwksURL, b.devicePage, b.IDPIssuer+"/.well-known/openid-configuration")
	}
	client := &http.Client{Timeout: 10 * time.Second}
	for _, u := range urls {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("self-test: %w", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("self-test: %s answers %s", u, resp.Status)
		}
	}
	return nil
}

// write puts the file there whole or not at all; it names passwords.
func (r readiness) write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

// print says what to open and what to type.
func (r readiness) print(w io.Writer, data, readyFile string) {
	rel := data
	if cwd, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(cwd, data); err == nil && len(short) < len(rel) {
			rel = short
		}
	}
	pasted := func(card string, words ...string) string {
		if rel != defaultData && words[0] == "pa" {
			words = append(words, "--data", rel)
		}
		return shell.Line(append(words, "--card", card)...)
	}
	fmt.Fprintf(w, "\nCountersign is ready: %s\n\n", r.PublicURL)
	fmt.Fprintln(w, "Let the demo agent ask for something. In another terminal, in this folder:")
	for _, b := range r.Brands {
		fmt.Fprintf(w, "\n  # %s\n  %s\n", b.Name, pasted(b.InterfaceURL, "pa", "login"))
	}
	fmt.Fprintln(w, "\nThen open the link it prints, and sign in as alex with the password demo (or sam, also demo).")
	hotel := r.Brands[0].InterfaceURL
	fmt.Fprintln(w, "Talk to the Brands' agents; they ask for what they may not do yet:")
	fmt.Fprintln(w)
	for _, b := range r.Brands {
		text := "Order champagne"
		if b.ID == string(demoOutfitter) {
			text = "Where is my parcel?"
		}
		fmt.Fprintln(w, " ", pasted(b.InterfaceURL, "pa", "send", "--follow", "--text", text))
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Check the token as the Brand would:\n\n  %s |\n    %s\n", pasted(hotel, "pa", "token"), pasted(hotel, "verify", "token", "-"))
	fmt.Fprintln(w, "\nSee and end what agents may do:")
	for _, b := range r.Brands {
		fmt.Fprintf(w, "  %s/b/%s/agents\n", r.PublicURL, b.ID)
	}
	if r.ConsoleLink != "" {
		fmt.Fprintf(w, "\nOwn the demo Brands on the dashboard; this link works once, the next start prints another:\n  %s\n", r.ConsoleLink)
		fmt.Fprintf(w, "Or sign up for a Brand of your own at %s; mail stays at %s\n", r.DashboardURL, r.MailURL)
	}
	if readyFile == "" {
		fmt.Fprintln(w, "\nBe the Brand, or the operator: --ready-file FILE writes API keys, the database URL and more.")
	} else {
		fmt.Fprintf(w, "\nBe the Brand, or the operator: API keys, the database URL and more are in %s\n", readyFile)
	}
	fmt.Fprintln(w, "\nStop with Ctrl-C. Everything is kept for next time in", rel)
}
