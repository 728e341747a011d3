# What an operator may do who destroys the keys of Brands that are gone:
# countersign keys destroy prints the commands. Not for the service. Give it to a
# person, for as long as it takes.

# Allow the deletion of a Brand's key, and delete it. The one parameter is the
# only one: no key is made exportable or changed in any other way.
path "transit/keys/tenant-*" {
  capabilities = ["update", "delete"]
  allowed_parameters = {
    "deletion_allowed" = ["true", true]
  }
}
