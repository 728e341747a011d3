package egress

import (
	"errors"
	"testing"
)

func TestURLsThatMayNotBeFetched(t *testing.T) { // R24
	for _, raw := range []string{
		"", "keys", "/keys", "//a.example/keys", "https:", "https://", "https:///keys", "https:a.example",
		"http://a.example/keys", "ftp://a.example/keys", "file:///etc/passwd", "gopher://a.example", "HTTPX://a.example",
		"https://user@a.example/", "https://user:secret@a.example/", "https://@a.example/", "https://a.example/#", "https://a.example/#x",
		"https://a.example:80/", "https://a.example:8443/", "https://a.example:0/", "https://a.example:99999/",
		"https://127.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/latest/", "https://[::1]/",
		"https://[::ffff:8.8.8.8]/", "https://[64:ff9b::808:808]/", "https://[fe80::1%25eth0]/",
		"http://127.0.0.1:8080/", "http://localhost:8080/", "https://localhost:8443/", "https://a .example/", "https://a.example/\x00",
	} {
		if err := CheckURL(raw, false); !errors.Is(err, ErrForbiddenURL) {
			t.Errorf("%q: %v, want ErrForbiddenURL", raw, err)
		}
	}
	for _, raw := range []string{
		"https://a.example", "https://a.example/jwks.json?v=1", "https://a.example:443/", "https://8.8.8.8/", "https://[2606:4700::1111]/",
	} {
		if err := CheckURL(raw, false); err != nil {
			t.Errorf("%q: %v, want it accepted", raw, err)
		}
	}
}

func TestDevelopmentURLs(t *testing.T) { // R24
	for _, raw := range []string{
		"http://127.0.0.1:8080/jwks", "http://localhost:8080/", "http://[::1]:1/", "https://localhost:8443/", "https://a.example/",
	} {
		if err := CheckURL(raw, true); err != nil {
			t.Errorf("%q: %v, want it accepted", raw, err)
		}
	}
	for _, raw := range []string{
		"http://a.example/", "http://localhost.a.example/", "http://10.0.0.1/", "https://10.0.0.1/", "https://a.example:8443/",
		"http://u@localhost/", "http://localhost/#x", "ws://localhost/", "http://127.1:80/", "http://[::ffff:127.0.0.1]/",
	} {
		if err := CheckURL(raw, true); !errors.Is(err, ErrForbiddenURL) {
			t.Errorf("%q: %v, want ErrForbiddenURL", raw, err)
		}
	}
}
