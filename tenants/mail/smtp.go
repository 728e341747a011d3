package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	gomail "github.com/wneessen/go-mail"
)

// SMTP sends through a mail server.
type SMTP struct {
	client *gomail.Client
	from   string
}

var errSMTPURL = errors.New("give smtps://user:password@host:465, or smtp://user:password@host:587 where the server speaks STARTTLS")

// NewSMTP returns a sender over the server that the URL names. Without TLS it
// speaks only to this machine. The URL holds a password, so no error quotes it.
func NewSMTP(server, from string) (*SMTP, error) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return nil, errSMTPURL
	}
	var options []gomail.Option
	port := 587
	switch {
	case u.Scheme == "smtps":
		port = 465
		options = append(options, gomail.WithSSL())
	case u.Scheme == "smtp" && loopback(u.Hostname()):
		port = 25
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case u.Scheme == "smtp":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	default:
		return nil, errSMTPURL
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return nil, errSMTPURL
		}
	}
	options = append(options, gomail.WithPort(port), gomail.WithTimeout(onePost))
	if password, ok := u.User.Password(); ok {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	if err := gomail.NewMsg().From(from); err != nil {
		return nil, fmt.Errorf("sender %q is not an e-mail address", from)
	}
	client, err := gomail.NewClient(u.Hostname(), options...)
	if err != nil {
		return nil, errSMTPURL
	}
	return &SMTP{client: client, from: from}, nil
}

// Send implements Sender.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	msg := gomail.NewMsg()
	if err := errors.Join(msg.From(s.from), msg.To(m.To)); err != nil {
		return fmt.Errorf("address mail: %w", err)
	}
	msg.Subject(m.Subject)
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	// Answering machines stay silent, and nobody's filter takes it for an advert.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	if err := s.client.DialAndSendWithContext(ctx, msg); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
