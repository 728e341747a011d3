// Package logintest is a Brand's own login page, as small as one can be: people
// sign in on it, and it posts a signed assertion of who they are to where they
// came from. Tests also have it sign what no honest page would.
package logintest
