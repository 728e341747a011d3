// Package web is browser and server plumbing that knows nothing of delegation:
// the middleware chain, one log record per request, security headers, browser
// sessions, the visitor's address, a server with every time-out set.
package web
