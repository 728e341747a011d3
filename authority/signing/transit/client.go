package transit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/vault/api"
)

// TLS says whom to trust beside the system's roots, and who we are where Vault
// asks. There is no way to switch verification off.
type TLS struct {
	CAFile     string // PEM; replaces the system's roots
	CertFile   string // our certificate and its key, PEM
	KeyFile    string
	ServerName string // when the certificate names another host than the address
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA certificates: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// checkAddress refuses to send a token over the network in the clear.
func checkAddress(address string, plaintext bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("address %q: give it as in https://vault.example:8200", address)
	}
	switch u.Scheme {
	case "https":
		return nil
	case "http":
		ip := net.ParseIP(u.Hostname())
		if plaintext || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
		return fmt.Errorf("address %s: without TLS the token would travel in the clear", address)
	default:
		return fmt.Errorf("address %q: neither https nor http", address)
	}
}

// newClient returns a client that carries no token. It takes nothing from the
// environment: a VAULT_SKIP_VERIFY or VAULT_TOKEN left in a shell must not
// change what the service does.
func newClient(c Config) (*api.Client, error) {
	tlsConfig, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.Timeout, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: c.Timeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        c.InFlight,
		MaxIdleConnsPerHost: c.InFlight,
		IdleConnTimeout:     90 * time.Second,
	}
	client, err := api.NewClient(&api.Config{
		Address: c.Address,
		HttpClient: &http.Client{
			Transport: transport,
			// The library follows a standby's redirect by itself, once.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		// Its own 60 s and two retries would hold a token endpoint for minutes.
		MaxRetries: 0,
		Timeout:    patience,
	})
	if err != nil {
		return nil, errors.Join(errors.New("set up client"), err)
	}
	client.SetHeaders(http.Header{api.RequestHeaderName: {"true"}}) // and no namespace
	client.ClearToken()
	if c.Namespace != "" {
		client.SetNamespace(c.Namespace)
	}
	return client, nil
}
