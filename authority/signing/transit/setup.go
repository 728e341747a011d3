package transit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"
)

// setupName names the AppRole and the policy that Setup makes for a mount, so that
// installations with mounts of their own do not overwrite each other's. The dot
// stands for a slash and is in no mount: "a/b" and "a-b" stay two. Vault ignores
// the case of both names; mounts that differ in it meet in the check of the policy.
func setupName(mount string) (string, error) {
	name := "countersign-dev-" + strings.ToLower(strings.ReplaceAll(mount, "/", "."))
	if !setupForm.MatchString(name) {
		return "", fmt.Errorf("mount %q cannot name a policy: let it end with a letter or digit", mount)
	}
	return name, nil
}

// setupForm is what Vault takes for a role's name.
var setupForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*[a-z0-9_]$`)

// Setup prepares a Vault for development: the engine at c.Mount, AppRole, the
// policy, a role, the sealing key. c.Auth must be allowed all that. It may run
// any number of times, changes nothing that is right, and refuses what another
// installation seems to have made. The returned Auth can do
// no more than Policy says.
//
// In production an operator does this once, as deploy/vault says; the service
// never holds a token that could.
func Setup(ctx context.Context, c Config) (Auth, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	name, err := setupName(c.Mount)
	if err != nil {
		return nil, fmt.Errorf("set up vault: %w", err)
	}
	client, err := newClient(c)
	if err != nil {
		return nil, fmt.Errorf("vault %s: %w", c.Name, err)
	}
	secret, err := c.Auth.login(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("set up vault: log in: %w", err)
	}
	client.SetToken(secret.Auth.ClientToken)
	s := setup{client: client, config: c, name: name}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"enable transit", s.transit},
		{"enable approle", s.approle},
		{"make the sealing key", s.sealKey},
		{"write the policy", s.policy},
		{"write the role", s.role},
	} {
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("set up vault: %s: %w", step.name, err)
		}
	}
	auth, err := s.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up vault: %w", err)
	}
	c.Log.InfoContext(ctx, "vault is set up", slog.String("address", c.Address), slog.String("mount", c.Mount))
	return auth, nil
}

type setup struct {
	client *api.Client
	config Config
	name   string // of the role and the policy
}

func (s setup) transit(ctx context.Context) error {
	mounts, err := s.client.Sys().ListMountsWithContext(ctx)
	if err != nil {
		return err
	}
	if there := mounts[s.config.Mount+"/"]; there != nil {
		if there.Type != "transit" {
			return fmt.Errorf("%s is a mount of type %s", s.config.Mount, there.Type)
		}
		return nil
	}
	return s.client.Sys().MountWithContext(ctx, s.config.Mount, &api.MountInput{
		Type: "transit", Description: "Countersign: signing keys of Brands",
	})
}

func (s setup) approle(ctx context.Context) error {
	methods, err := s.client.Sys().ListAuthWithContext(ctx)
	if err != nil {
		return err
	}
	if there := methods["approle/"]; there != nil {
		if there.Type != "approle" {
			return fmt.Errorf("approle is a method of type %s", there.Type)
		}
		return nil
	}
	return s.client.Sys().EnableAuthWithOptionsWithContext(ctx, "approle", &api.EnableAuthOptions{Type: "approle"})
}

func (s setup) sealKey(ctx context.Context) error {
	path := s.config.Mount + "/keys/" + sealKey
	_, err := s.client.Logical().WriteWithContext(ctx, path, map[string]any{
		"type": "aes256-gcm96", "derived": true, "exportable": false, "allow_plaintext_backup": false,
	})
	if err != nil {
		return err
	}
	secret, err := s.client.Logical().ReadWithContext(ctx, path)
	if err != nil {
		return err
	}
	key, err := parseKey(secret, sealKey)
	if err != nil {
		return err
	}
	if err := key.checkSeal(); err != nil {
		return fmt.Errorf("key %s %w", sealKey, err)
	}
	return nil
}

func (s setup) policy(ctx context.Context) error {
	there, err := s.client.Sys().GetPolicyWithContext(ctx, s.name)
	if err != nil {
		return err
	}
	want := Policy(s.config.Mount, s.config.Prefix)
	switch strings.TrimSpace(there) {
	case strings.TrimSpace(want):
		return nil
	case "":
		return s.client.Sys().PutPolicyWithContext(ctx, s.name, want)
	default:
		// Overwriting it would take another installation's rights away while it runs.
		return fmt.Errorf("policy %[1]s is there with another text: use another mount, or, if nothing else uses it (an older version made it), run: vault policy delete %[1]s", s.name)
	}
}

func (s setup) role(ctx context.Context) error {
	// Every start of dev makes a secret id, and one without an end would stay for
	// ever. Twice the longest life of a token: whenever that token ends, early or
	// late, the secret is still good for the next. A dev that runs for longer than
	// two days may be refused then, says so with an ALARM, and is started again.
	const (
		life       = 20 * time.Minute
		most       = 24 * time.Hour
		secretLife = 2 * most
	)
	_, err := s.client.Logical().WriteWithContext(ctx, "auth/approle/role/"+s.name, map[string]any{
		"token_policies":          []string{s.name},
		"token_no_default_policy": true,
		"token_ttl":               int(life.Seconds()),
		"token_max_ttl":           int(most.Seconds()),
		"bind_secret_id":          true,
		"secret_id_ttl":           int(secretLife.Seconds()),
	})
	return err
}

func (s setup) credentials(ctx context.Context) (Auth, error) {
	role, err := s.client.Logical().ReadWithContext(ctx, "auth/approle/role/"+s.name+"/role-id")
	if err != nil {
		return nil, fmt.Errorf("read role id: %w", err)
	}
	secret, err := s.client.Logical().WriteWithContext(ctx, "auth/approle/role/"+s.name+"/secret-id", nil)
	if err != nil {
		return nil, fmt.Errorf("make secret id: %w", err)
	}
	var auth AppRole
	if role != nil {
		auth.RoleID, _ = role.Data["role_id"].(string)
	}
	if secret != nil {
		auth.SecretID, _ = secret.Data["secret_id"].(string)
	}
	if auth.RoleID == "" || auth.SecretID == "" {
		return nil, errors.New("role has no credentials")
	}
	return auth, nil
}
