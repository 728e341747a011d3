// Package a2a serves what a Brand shows of itself under A2A 1.0: today its
// Agent Card, from which a personal agent learns how to ask for delegation.
package a2a
