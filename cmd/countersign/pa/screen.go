package pa

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign.dev/cmd/countersign/pa/discovery"
)

// screen is what a person at a terminal sees of a login.
type screen struct {
	out  io.Writer
	live bool // it is a terminal: a line may be rewritten, a QR code drawn
	qr   bool // draw the QR code in any case

	turns int
}

func (s *screen) ask(b discovery.Brand, started Started) {
	link := cmp.Or(started.VerificationURIComplete, started.VerificationURI)
	where, here := "on any device", discovery.OnThisMachine(link)
	if here {
		where = "in a browser on this machine"
	}
	fmt.Fprintf(s.out, "To let this agent act for you at %s, open this link %s:\n\n    %s\n\n", brandName(b), where, link)
	if s.qr || s.live && !here { // a phone would look for the page on itself
		if err := drawQR(s.out, link); err == nil {
			fmt.Fprintln(s.out)
		}
	}
	fmt.Fprintf(s.out, "The page must show this code:  %s\n", started.UserCode)
	if link != started.VerificationURI {
		fmt.Fprintf(s.out, "If you cannot open the link, type the code at %s\n", started.VerificationURI)
	}
	fmt.Fprintf(s.out, "There you sign in and choose what to allow. The link works for %s.\n\n", roughly(started.ExpiresIn))
	s.line("Waiting for your answer …")
}

func (s *screen) wait(w Waiting) {
	s.turns++
	mark := []string{"·", "•"}[s.turns%2]
	switch {
	case w.Err != nil:
		s.line(fmt.Sprintf("%s The Brand does not answer just now; trying again in %s …", mark, roughly(w.Next)))
	case s.live:
		s.line(fmt.Sprintf("%s Waiting for your answer … %s left", mark, roughly(w.Left)))
	}
}

// line rewrites the last line of a terminal, and adds one elsewhere.
func (s *screen) line(text string) {
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(s.out, text)
}

func (s *screen) clear() {
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// allowed says in the Brand's words what the agent may do now, and what not.
func (s *screen) allowed(b discovery.Brand, asked []string, t Tokens) {
	granted := strings.Fields(t.Scope)
	fmt.Fprintf(s.out, "Allowed at %s, until %s unless refreshed:\n", brandName(b), t.ExpiresAt.Local().Format("15:04"))
	for _, id := range granted {
		note := ""
		if !slices.Contains(asked, id) {
			note = ", allowed earlier"
		}
		fmt.Fprintf(s.out, "  ✓ %s%s\n", inWords(b, id), note)
	}
	var refused []string
	for _, id := range asked {
		if !slices.Contains(granted, id) {
			refused = append(refused, id)
		}
	}
	if len(refused) > 0 {
		fmt.Fprintln(s.out, "Not allowed:")
	}
	for _, id := range refused {
		fmt.Fprintf(s.out, "  ✗ %s\n", inWords(b, id))
	}
}

func inWords(b discovery.Brand, id string) string {
	for _, scope := range b.Scopes {
		if scope.ID == id && scope.Description != "" {
			return fmt.Sprintf("%s (%s)", printable(scope.Description), printable(id))
		}
	}
	return printable(id)
}

func brandName(b discovery.Brand) string {
	return cmp.Or(printable(b.Name), b.Interface)
}

func roughly(d time.Duration) string {
	if d >= 90*time.Second {
		return fmt.Sprintf("%d minutes", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d seconds", int(d.Round(time.Second)/time.Second))
}
