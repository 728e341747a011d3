package oauth

import (
	"net/url"
	"strings"
	"testing"
)

// B100, B103: what is accepted says exactly one thing per name, and is decoded
// once: encoding what was read and reading it again changes nothing.
func FuzzParseForm(f *testing.F) {
	for _, s := range []string{"a=b", "a=b&a=c", "scope=x+y", "client_id=https%3A%2F%2Fpa.example%2Fa%252Fb", "a;b", "%zz", "a=%00", "=", "&&", "a[]=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form, err := parseForm(body)
		if err != nil {
			return
		}
		again, err := parseForm(form.Encode())
		if err != nil || again.Encode() != form.Encode() {
			t.Fatalf("%q: %v, %v", body, again, err)
		}
		for name, values := range form {
			if len(values) != 1 || strings.ContainsRune(values[0], 0) || strings.ContainsRune(name, 0) {
				t.Fatalf("%q: %q = %q", body, name, values)
			}
		}
	})
}

// B103: decoded exactly once.
func TestFormIsDecodedOnce(t *testing.T) {
	form, err := parseForm("client_id=https%3A%2F%2Fpa.example.com%2Fa%252Fb%2Bc+d")
	if err != nil {
		t.Fatal(err)
	}
	if got := form.Get("client_id"); got != "https://pa.example.com/a%2Fb+c d" {
		t.Fatal(got)
	}
	if _, err := url.ParseQuery("a=%25"); err != nil {
		t.Fatal(err)
	}
}
