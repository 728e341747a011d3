package shell

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// Flags lists what a command may be given, each flag with the environment
// variable that sets it too.
func Flags(w io.Writer, flags *flag.FlagSet, variable func(flagName string) string) {
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			text += fmt.Sprintf(" (default: %s)", f.DefValue)
		}
		head := strings.TrimRight("  --"+f.Name+" "+value, " ")
		fmt.Fprintf(w, "%s\n        %s [%s]\n", head, text, variable(f.Name))
	})
}
