package pa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// sentEvent is the line of send --json.
type sentEvent struct {
	Event     string          `json:"event"` // replied, or stepup
	Text      string          `json:"text"`
	ContextID string          `json:"context_id"`
	MessageID string          `json:"message_id"`
	Missing   []string        `json:"missing_scopes,omitempty"`
	Link      string          `json:"verification_uri_complete,omitempty"`
	Receipt   json.RawMessage `json:"receipt,omitempty"`
}

func runSend(ctx context.Context, c *command) error {
	var m Message
	var follow bool
	c.brandFlags()
	c.flags.StringVar(&c.sub, "sub", "alex-phone", "which of the agent's `user`s it speaks for")
	c.flags.StringVar(&m.Text, "text", "", "`what` to say to the Brand's agent")
	c.flags.StringVar(&m.Context, "context", "", "`id` of the conversation to go on with, as the last answer named it")
	c.flags.StringVar(&m.ID, "message", "", "`id` of the message, to ask again for its reply (default: a new one)")
	c.flags.BoolVar(&follow, "follow", false, "where a permission is missing, wait until the person has allowed it and send again")
	if err := c.parse(); err != nil {
		return err
	}
	switch {
	case c.card == "":
		return fmt.Errorf("--card is missing: the URL of the Brand's interface; %s prints those of its Brands", c.devLine())
	case strings.TrimSpace(m.Text) == "":
		return errors.New("--text is missing: what to say")
	}
	if m.ID == "" {
		m.ID = newMessageID()
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	var said Said
	if follow {
		said, err = Follow(ctx, m, o, func(s Said) { c.printSaid(m, s) })
	} else {
		said, err = Send(ctx, m, o)
	}
	if err != nil {
		// It may have arrived. The same again gets its reply; another would act anew.
		return fmt.Errorf("%w\nTo send the same message again and not another, add --message %s", err, printable(m.ID))
	}
	c.printSaid(m, said)
	return nil
}

func (c *command) printSaid(m Message, s Said) {
	if c.json {
		e := sentEvent{"replied", s.Text, s.Context, m.ID, s.Missing, s.Link, s.Receipt}
		if len(s.Missing) > 0 {
			e.Event = "stepup"
		}
		lines := json.NewEncoder(c.stdout)
		lines.SetEscapeHTML(false) // links stay readable
		_ = lines.Encode(e)
		return
	}
	for line := range strings.SplitSeq(s.Text, "\n") {
		fmt.Fprintln(c.stdout, printable(line))
	}
	if len(s.Missing) > 0 {
		fmt.Fprintf(c.stdout, "\nIt may not do this yet: %s.\n", printable(strings.Join(s.Missing, ", ")))
		if s.Link != "" {
			fmt.Fprintf(c.stdout, "The person can allow it here: %s\n", s.Link)
		}
	}
	if s.Receipt != nil {
		fmt.Fprintln(c.stdout, "\nCountersigned; --json shows the receipt.")
	}
	fmt.Fprintf(c.stdout, "Go on with --context %s\n", printable(s.Context))
}
