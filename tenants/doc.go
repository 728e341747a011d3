// Package tenants knows who the Brands are: their Provider and audience, their
// URLs, what they let agents do, and how their people log in.
//
// It also owns the fence that keeps Brands apart. Every statement about a
// Brand's rows goes through DB, which names the Brand to PostgreSQL in the
// same round trip; row-level security then hides every other Brand's rows,
// whatever a query forgot. Start at Brand and Directory.
package tenants
