package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"countersign.dev/authority/signing/transit"
	"github.com/prometheus/client_golang/prometheus"
)

// vaultFlags say where private keys rest. Without an address they rest in the
// local keyring.
type vaultFlags struct {
	addr, namespace, mount, caFile, serverName string
	roleID, secretIDFile                       string
	kubernetesRole, kubernetesJWT              string
}

func (v *vaultFlags) register(s settings) {
	s.StringVar(&v.addr, "vault-addr", "", "`URL` of HashiCorp Vault, which then holds the signing keys")
	s.StringVar(&v.namespace, "vault-namespace", "", "Vault `namespace`")
	s.StringVar(&v.mount, "vault-mount", "transit", "`mount` of Vault's transit engine")
	s.StringVar(&v.caFile, "vault-ca-file", "", "`file` with the certificates that vouch for Vault; empty: the system's")
	s.StringVar(&v.serverName, "vault-server-name", "", "`name` in Vault's certificate, if it is not the address's")
	s.StringVar(&v.roleID, "vault-role-id", "", "`id` of our AppRole")
	s.StringVar(&v.secretIDFile, "vault-secret-id-file", "", "`file` with the AppRole's secret id, read at every login")
	s.StringVar(&v.kubernetesRole, "vault-kubernetes-role", "", "`role` to log in with as a pod, in place of an AppRole")
	s.StringVar(&v.kubernetesJWT, "vault-kubernetes-token-file", "", "`file` with the pod's token; empty: the usual place")
}

func (v *vaultFlags) config(auth transit.Auth, metrics prometheus.Registerer, log *slog.Logger) transit.Config {
	return transit.Config{
		Address: v.addr, Namespace: v.namespace, Mount: v.mount, Auth: auth,
		TLS: transit.TLS{CAFile: v.caFile, ServerName: v.serverName}, Metrics: metrics, Log: log, Now: time.Now,
	}
}

// auth is how the service logs in: as a pod or with an AppRole, never with a
// token from the environment, which would end with nobody to renew it.
func (v *vaultFlags) auth() (transit.Auth, error) {
	switch {
	case v.kubernetesRole != "":
		return transit.Kubernetes{Role: v.kubernetesRole, JWTFile: v.kubernetesJWT}, nil
	case v.roleID != "" && v.secretIDFile != "":
		return transit.AppRole{RoleID: v.roleID, SecretIDFile: v.secretIDFile}, nil
	}
	return nil, errors.New("--vault-addr needs a way to log in: --vault-role-id with --vault-secret-id-file, or --vault-kubernetes-role")
}

// open connects to Vault for serve, or returns nil where none is named.
func (v *vaultFlags) open(metrics prometheus.Registerer, log *slog.Logger) (*transit.Backend, error) {
	if v.addr == "" {
		return nil, nil //nolint:nilnil // no Vault is no error
	}
	auth, err := v.auth()
	if err != nil {
		return nil, err
	}
	return transit.New(v.config(auth, metrics, log))
}

// setUp prepares a Vault for dev, with the token in VAULT_TOKEN: mount, policy,
// AppRole and sealing key; and then works with that AppRole alone.
func (v *vaultFlags) setUp(ctx context.Context, metrics prometheus.Registerer, log *slog.Logger) (*transit.Backend, error) {
	if v.addr == "" {
		return nil, nil //nolint:nilnil // no Vault is no error
	}
	token := os.Getenv("VAULT_TOKEN")
	if token == "" {
		return nil, fmt.Errorf("--vault-addr: put a token that may set up %s into VAULT_TOKEN", v.addr)
	}
	auth, err := transit.Setup(ctx, v.config(transit.Token(token), nil, log))
	if err != nil {
		return nil, err
	}
	return transit.New(v.config(auth, metrics, log))
}
