package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// runVersion says what a report of trouble has to name.
func runVersion(_ context.Context, _ []string, _ io.Reader, stdout, stderr io.Writer) int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(stderr, "countersign version: this binary was built without module support and does not know")
		return 1
	}
	fmt.Fprintf(stdout, "countersign %s, %s, %s/%s\n", info.Main.Version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if commit := set["vcs.revision"]; commit != "" {
		changed := ""
		if set["vcs.modified"] == "true" {
			changed = ", changed since"
		}
		fmt.Fprintf(stdout, "commit %s of %s%s\n", commit, set["vcs.time"], changed)
	}
	return 0
}
