package transit

import "fmt"

// Policy returns the least that the running service needs, as a Vault policy.
// deploy/vault/countersign.hcl is this text for the defaults.
//
// The list of parameters on the keys is what keeps the service from its own
// keys: config, import and trim lie below the same path, and each needs a
// parameter that is not listed. There is no rule for export, backup, deletion,
// encryption with Brands' keys, or any other mount.
func Policy(mount, prefix string) string {
	return fmt.Sprintf(policyText, mount, prefix, sealKey)
}

const policyText = `# What the running service may do in Vault, and nothing more.

# Make and rotate Brands' signing keys, and read their public halves. The
# listed parameters are the only ones: making a key exportable or deletable,
# raising its minimum versions, importing or trimming are all refused.
path "%[1]s/keys/%[2]s*" {
  capabilities = ["read", "update"]
  allowed_parameters = {
    "type"                   = ["ecdsa-p256", "rsa-2048"]
    "exportable"             = [false]
    "allow_plaintext_backup" = [false]
  }
}

# Sign with them.
path "%[1]s/sign/%[2]s*" {
  capabilities = ["update"]
}

# Seal and open secrets at rest. Without "create" a missing key is an error
# and is not made on the way.
path "%[1]s/keys/%[3]s" {
  capabilities = ["read"]
}
path "%[1]s/encrypt/%[3]s" {
  capabilities = ["update"]
}
path "%[1]s/decrypt/%[3]s" {
  capabilities = ["update"]
}
path "%[1]s/rewrap/%[3]s" {
  capabilities = ["update"]
}

# Keep its own token alive, and end it when it is replaced.
path "auth/token/lookup-self" {
  capabilities = ["read"]
}
path "auth/token/renew-self" {
  capabilities = ["update"]
}
path "auth/token/revoke-self" {
  capabilities = ["update"]
}
`

// DestroyPolicy returns what an operator needs to destroy the keys of Brands that
// are gone, and what the service never has. deploy/vault/destroy.hcl is this text
// for the defaults.
func DestroyPolicy(mount, prefix string) string {
	return fmt.Sprintf(destroyText, mount, prefix)
}

const destroyText = `# What an operator may do who destroys the keys of Brands that are gone:
# countersign keys destroy prints the commands. Not for the service. Give it to a
# person, for as long as it takes.

# Allow the deletion of a Brand's key, and delete it. The one parameter is the
# only one: no key is made exportable or changed in any other way.
path "%[1]s/keys/%[2]s*" {
  capabilities = ["update", "delete"]
  allowed_parameters = {
    "deletion_allowed" = ["true", true]
  }
}
`
