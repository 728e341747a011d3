// Command vault is a real Vault server for our tests, cut down to what they use:
// the core with its barrier, seal, tokens and policies, the transit engine,
// AppRole, file storage and the HTTP API.
//
//	vault server -config FILE
//
// is called as HashiCorp's own binary is, so that the tests start either in one
// way. It stands in a module of its own so that the product never links it: the
// server is under the Business Source License, the client library is not. It
// serves loopback without TLS and is of no use for anything but tests.
package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/audit"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/transit"
	"github.com/hashicorp/vault/command/server"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/vault"
)

func main() {
	if len(os.Args) != 4 || os.Args[1] != "server" || os.Args[2] != "-config" {
		fmt.Fprintln(os.Stderr, "usage: vault server -config FILE")
		os.Exit(2)
	}
	if err := run(os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	config, err := server.LoadConfigFile(path)
	if err != nil {
		return fmt.Errorf("read config: %w", err)
	}
	if len(config.Listeners) != 1 || config.Storage == nil || config.Storage.Type != "file" {
		return errors.New("the config must have one listener and file storage")
	}
	listener, err := listen(config.Listeners[0].Address)
	if err != nil {
		return err
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "vault", Level: hclog.Warn, Output: os.Stderr})
	storage, err := file.NewFileBackend(config.Storage.Config, log.Named("storage"))
	if err != nil {
		return fmt.Errorf("open storage: %w", err)
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		LogicalBackends:    map[string]logical.Factory{"transit": transit.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
		AuditBackends:      map[string]audit.Factory{"file": audit.NewFileBackend},
		BuiltinRegistry:    builtins{}, // enabling an engine panics without one
		RawConfig:          config,
		Logger:             log,
		DisableMlock:       true, // nothing here is a secret
		RedirectAddr:       "http://" + listener.Addr().String(),
	})
	if err != nil {
		return fmt.Errorf("start core: %w", err)
	}
	return serve(core, config, listener)
}

// listen refuses every address that others can reach: there is no TLS here.
func listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("address %q is not a loopback address", addr)
	}
	return net.Listen("tcp", addr)
}

func serve(core *vault.Core, config *server.Config, listener net.Listener) error {
	srv := &http.Server{
		Handler:           vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: config.Listeners[0]}),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		srv.Close()
	}()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return core.Shutdown()
}
