// Package pgtest gives every test a real PostgreSQL database of its own, with all
// migrations applied. Only tests may import it.
//
//	db := pgtest.New(t)
//	rules := authority.New(authority.Config{DB: db.App(t), …})
//
// What it promises: a test sees nothing of any other test, in this process or
// another; the service's pool logs in as the service does in production, so that
// row-level security is in force; and a machine without PostgreSQL makes tests fail
// with the remedy – they are never skipped.
//
// With COUNTERSIGN_TEST_DATABASE_URL (a superuser's) that server is used. Otherwise
// each test process runs a private one, which dies with it. Databases are clones of a
// template that is made once for each state of the migration files: some 50 ms each.
package pgtest
