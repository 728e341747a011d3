//go:build !unix

package pgtest

import "os"

func claim(string) error         { return nil } // localpg refuses this system
func ownedByUs(os.FileInfo) bool { return true }
