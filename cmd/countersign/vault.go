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
	prefix, name                               string
	addr, namespace, mount, caFile, serverName string
	roleID, secretIDFile                       string
	kubernetesRole, kubernetesJWT              string
}

// register names the flags. prefix is "vault", or "former-vault" for the one
// that Brands are moving away from.
func (v *vaultFlags) register(s settings, prefix string) {
	v.prefix = prefix
	flag := func(to *string, name, otherwise, about string) { s.StringVar(to, prefix+"-"+name, otherwise, about) }
	flag(&v.addr, "addr", "", "`URL` of HashiCorp Vault, which then holds the signing keys")
	flag(&v.name, "name", "vault", "what keys in this Vault are noted under; never change it for a Vault that holds keys")
	flag(&v.namespace, "namespace", "", "Vault `namespace`")
	flag(&v.mount, "mount", "transit", "`mount` of Vault's transit engine")
	flag(&v.caFile, "ca-file", "", "`file` with the certificates that vouch for Vault; empty: the system's")
	flag(&v.serverName, "server-name", "", "`name` in Vault's certificate, if it is not the address's")
	flag(&v.roleID, "role-id", "", "`id` of our AppRole")
	flag(&v.secretIDFile, "secret-id-file", "", "`file` with the AppRole's secret id, read at every login")
	flag(&v.kubernetesRole, "kubernetes-role", "", "`role` to log in with as a pod, in place of an AppRole")
	flag(&v.kubernetesJWT, "kubernetes-token-file", "", "`file` with the pod's token; empty: the usual place")
}

func (v *vaultFlags) config(auth transit.Auth, metrics prometheus.Registerer, log *slog.Logger) transit.Config {
	return transit.Config{
		Name: v.name, Address: v.addr, Namespace: v.namespace, Mount: v.mount, Auth: auth,
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
	return nil, fmt.Errorf("--%[1]s-addr needs a way to log in: --%[1]s-role-id with --%[1]s-secret-id-file, or --%[1]s-kubernetes-role", v.prefix)
}

// distinct refuses names that would hide one key store behind another.
func distinct(vault, former vaultFlags) error {
	for _, v := range []vaultFlags{vault, former} {
		if v.addr != "" && v.name == "local" {
			return fmt.Errorf("--%s-name: local is the name of the keyring in our own database", v.prefix)
		}
	}
	if vault.addr != "" && former.addr != "" && vault.name == former.name {
		return errors.New("--vault-name: give the new Vault another name than the former one; keys are noted under it")
	}
	return nil
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
