# What the running service may do in Vault, and nothing more.

# Make and rotate Brands' signing keys, and read their public halves. The
# listed parameters are the only ones: making a key exportable or deletable,
# raising its minimum versions, importing or trimming are all refused.
path "transit/keys/tenant-*" {
  capabilities = ["read", "update"]
  allowed_parameters = {
    "type"                   = ["ecdsa-p256", "rsa-2048"]
    "exportable"             = [false]
    "allow_plaintext_backup" = [false]
  }
}

# Sign with them.
path "transit/sign/tenant-*" {
  capabilities = ["update"]
}

# Seal and open secrets at rest. Without "create" a missing key is an error
# and is not made on the way.
path "transit/keys/countersign-seal" {
  capabilities = ["read"]
}
path "transit/encrypt/countersign-seal" {
  capabilities = ["update"]
}
path "transit/decrypt/countersign-seal" {
  capabilities = ["update"]
}
path "transit/rewrap/countersign-seal" {
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
