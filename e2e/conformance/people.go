package conformance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Asked are people at a terminal, who open links in a browser of their own.
type Asked struct {
	In    *bufio.Reader
	Out   io.Writer
	Names []string
}

// Count implements People.
func (a Asked) Count() int { return len(a.Names) }

// Decide implements People: it says what to do and waits for Enter.
func (a Asked) Decide(_ context.Context, link string, person int, d Decision) error {
	do := "allow all that is ticked"
	switch {
	case d.Deny:
		do = "say no"
	case len(d.Untick) > 0:
		do = "untick " + strings.Join(d.Untick, ", ") + ", and allow the rest"
	}
	fmt.Fprintf(a.Out, "\nOpen %s\nas %s, %s, then press Enter: ", link, a.Names[person], do)
	_, err := a.In.ReadString('\n')
	return err
}
