package transit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"countersign.dev/authority/signing"
	"countersign.dev/tenants"
)

// A transit key has one type for life, and signing.Version counts a Brand's keys
// of both algorithms. So version n of algorithm A is transit version n of the key
//
//	<prefix><brand>-<algorithm>        tenant-harbor-hotel-es256
//
// Numbers that belong to the other algorithm are made and never used. Name and
// number follow from what the database keeps beside the public key, and no two
// pairs share a private key: the last dash ends the Brand's id, whatever it is.
// Brand ids are never given twice, so neither are key names.

// sealKey encrypts secrets at rest. It must lie outside of every prefix, or the
// policy's rules for Brands' keys would hold for it too.
const sealKey = "countersign-seal"

// usualPrefix begins the names of Brands' keys.
const usualPrefix = "tenant-"

var (
	brandID    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	prefixForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}-$`)
	mountForm  = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`)
)

// keyType says how transit calls the algorithm's keys. ES256 is P-256 only;
// RS256 is 2048 bits as long as nobody asks for more.
func keyType(alg signing.Alg) (string, bool) {
	switch alg {
	case signing.ES256:
		return "ecdsa-p256", true
	case signing.RS256:
		return "rsa-2048", true
	default:
		return "", false
	}
}

// keyName returns the transit key of the Brand. The id is checked once more at
// this last door: it becomes part of a path, where "../" or "%2f" would reach
// another key (R36).
func (b *Backend) keyName(brand tenants.BrandID, alg signing.Alg) (string, error) {
	return keyName(b.prefix, brand, alg)
}

// KeyPath is where Vault has the Brand's keys of the algorithm, for an operator.
func KeyPath(mount string, brand tenants.BrandID, alg signing.Alg) (string, error) {
	name, err := keyName(usualPrefix, brand, alg)
	if err != nil || !mountForm.MatchString(mount) {
		return "", errors.Join(fmt.Errorf("no path of keys of %q in %q", brand, mount), err)
	}
	return mount + "/keys/" + name, nil
}

func keyName(prefix string, brand tenants.BrandID, alg signing.Alg) (string, error) {
	if !brandID.MatchString(string(brand)) {
		return "", fmt.Errorf("brand id %q cannot name a key: %w", brand, signing.ErrNoKey)
	}
	if _, ok := keyType(alg); !ok {
		return "", fmt.Errorf("no keys of algorithm %q", alg)
	}
	return prefix + string(brand) + "-" + strings.ToLower(string(alg)), nil
}

// parseMark splits "vault:v3:rest" into 3 and "rest".
func parseMark(s string) (version int, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "vault:v")
	if !ok {
		return 0, "", false
	}
	number, rest, ok := strings.Cut(s, ":")
	if !ok {
		return 0, "", false
	}
	version, err := strconv.Atoi(number)
	return version, rest, err == nil && version > 0
}
