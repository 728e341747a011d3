package transit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/hashicorp/vault/api"
)

// Auth is a way to log in to Vault: a Token, an AppRole or Kubernetes.
type Auth interface {
	// login returns an answer with Auth set. The client carries no token.
	login(ctx context.Context, door *api.Client) (*api.Secret, error)
}

// Token is a token that somebody else made. It is kept alive while Vault allows
// it; when it ends, so does our access.
type Token string

// LogValue and String keep the secret out of logs.
func (Token) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// String keeps the secret out of formatted text.
func (Token) String() string { return "[hidden]" }

func (t Token) login(ctx context.Context, door *api.Client) (*api.Secret, error) {
	self := door.WithNamespace(door.Namespace())
	self.SetToken(string(t))
	answer, err := self.Auth().Token().LookupSelfWithContext(ctx)
	if err != nil {
		return nil, err
	}
	ttl, err := answer.TokenTTL()
	if err != nil {
		return nil, err
	}
	renewable, err := answer.TokenIsRenewable()
	if err != nil {
		return nil, err
	}
	return &api.Secret{Auth: &api.SecretAuth{ClientToken: string(t), LeaseDuration: int(ttl.Seconds()), Renewable: renewable}}, nil
}

// AppRole logs in with a role's id and secret. The secret is in SecretID or, so
// that it can be changed while we run, in SecretIDFile, read at every login.
type AppRole struct {
	RoleID       string
	SecretID     string
	SecretIDFile string
	Mount        string // "approle" by default
}

// LogValue and String keep the secret out of logs.
func (a AppRole) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String keeps the secret out of formatted text.
func (a AppRole) String() string { return "approle " + a.RoleID + " [hidden]" }

func (a AppRole) login(ctx context.Context, door *api.Client) (*api.Secret, error) {
	secret := a.SecretID
	if a.SecretIDFile != "" {
		read, err := readSecret(a.SecretIDFile)
		if err != nil {
			return nil, err
		}
		secret = read
	}
	mount := a.Mount
	setDefault(&mount, "approle")
	return door.Logical().WriteWithContext(ctx, "auth/"+mount+"/login", map[string]any{"role_id": a.RoleID, "secret_id": secret})
}

// Kubernetes logs in as the pod's service account.
type Kubernetes struct {
	Role    string
	JWTFile string // the projected token; the pod's usual place by default
	Mount   string // "kubernetes" by default
}

func (k Kubernetes) login(ctx context.Context, door *api.Client) (*api.Secret, error) {
	file, mount := k.JWTFile, k.Mount
	setDefault(&file, "/var/run/secrets/kubernetes.io/serviceaccount/token")
	setDefault(&mount, "kubernetes")
	// Read each time: the kubelet replaces it long before it expires.
	jwt, err := readSecret(file)
	if err != nil {
		return nil, err
	}
	return door.Logical().WriteWithContext(ctx, "auth/"+mount+"/login", map[string]any{"role": k.Role, "jwt": jwt})
}

func readSecret(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read credentials: %w", err)
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", errors.New("read credentials: " + file + " is empty")
	}
	return secret, nil
}
