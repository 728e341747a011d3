// Package migrations holds the database schema as numbered SQL files and
// brings a database up to it.
//
// Files go forward only and are never edited once they have landed: a mistake
// is mended by the next number. Each file belongs to the package that writes
// the tables in it, named in its first line. Everything a Brand owns carries
// brand_id first in its key and is fenced by row-level security; the service
// connects as a member of the role countersign_app, which cannot see past the
// fence (see tenants.DB).
package migrations
