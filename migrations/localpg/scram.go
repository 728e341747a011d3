package localpg

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// scramIterations is PostgreSQL's own default.
const scramIterations = 4096

// scramVerifier is what a server stores for a password (RFC 5803), made here so that
// the password never travels in a statement. Our passwords are ASCII, for which
// SASLprep changes nothing.
func scramVerifier(password string) string {
	salt := make([]byte, 16)
	rand.Read(salt)
	return scramVerifierWithSalt(password, salt)
}

func scramVerifierWithSalt(password string, salt []byte) string {
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		panic(err) // only for parameters that these are not
	}
	client := sha256.Sum256(mac(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, text(salt), text(client[:]), text(mac(salted, "Server Key")))
}

func mac(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil)
}
