package mail_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign.dev/tenants/mail"
)

// post is a mail server that takes one message, and what it took.
func post(t *testing.T) (address string, taken <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	out := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		say := func(line string) { fmt.Fprintf(c, "%s\r\n", line) }
		say("220 post.example")
		var got strings.Builder
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			got.WriteString(lines.Text() + "\n")
			switch word, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " "); word {
			case "DATA":
				say("354 go on")
				for lines.Scan() && lines.Text() != "." {
					got.WriteString(lines.Text() + "\n")
				}
				say("250 taken")
			case "QUIT":
				say("221 bye")
				out <- got.String()
				return
			default:
				say("250 fine")
			}
		}
	}()
	return l.Addr().String(), out
}

// What arrives is what was sent, and a subject stays one line.
func TestSMTPDelivers(t *testing.T) {
	address, taken := post(t)
	s, err := mail.NewSMTP("smtp://"+address, "Countersign <post@countersign.example>")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Send(t.Context(), mail.Message{To: "ann@example.com", Subject: "Hello\r\nBcc: eve@example.com", Text: "see https://x.example/a\n"})
	if err != nil {
		t.Fatal(err)
	}
	got := <-taken
	for _, want := range []string{"RCPT TO:<ann@example.com>", "MAIL FROM:<post@countersign.example>", "https://x.example/a", "Auto-Submitted: auto-generated"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\nBcc:") || strings.Contains(got, "RCPT TO:<eve@example.com>") {
		t.Errorf("a subject became a header:\n%s", got)
	}
}

// A server elsewhere is spoken to under TLS only, and no mistake repeats a
// password.
func TestSMTPURLs(t *testing.T) {
	for _, bad := range []string{"", "smtp.example:25", "http://smtp.example", "smtp://", "smtp://user:hush@smtp.example:port"} {
		if _, err := mail.NewSMTP(bad, "a@example.com"); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := mail.NewSMTP("smtps://user:hush@smtp.example", "nobody"); err == nil {
		t.Error("a sender without an address")
	}
	for _, good := range []string{"smtps://user:hush@smtp.example", "smtp://smtp.example:587", "smtp://localhost:25"} {
		if _, err := mail.NewSMTP(good, "a@example.com"); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// flaky fails for a while.
type flaky struct {
	mu    sync.Mutex
	fails int
	tries int
}

func (f *flaky) Send(context.Context, mail.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tries++; f.tries <= f.fails {
		return errors.New("550 ann@example.com: no")
	}
	return nil
}

// A mail server that stumbles is asked again, for a while; and its complaints,
// which name addresses, stay out of the log.
func TestQueueTriesAgain(t *testing.T) {
	for fails, want := range map[int]int{0: 1, 2: 3, 9: 3} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			f := &flaky{fails: fails}
			q := mail.NewQueue(f, slog.New(slog.NewTextHandler(&log, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go q.Run(ctx)
			q.Put(ctx, mail.Members, mail.Message{To: "ann@example.com"})
			time.Sleep(time.Minute) // of the bubble's clock
			synctest.Wait()
			if f.tries != want {
				t.Errorf("%d tries after %d failures", f.tries, fails)
			}
			if gone := strings.Contains(log.String(), "could not be sent"); gone != (fails == 9) || strings.Contains(log.String(), "ann") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// Nobody waits for the mail server, however much waits already.
func TestQueueIsBounded(t *testing.T) {
	var log strings.Builder
	q := mail.NewQueue(&flaky{}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 1001 {
		q.Put(t.Context(), mail.Strangers, mail.Message{})
	}
	if !strings.Contains(log.String(), "dropped") {
		t.Error("nothing was dropped")
	}
}

// stuck takes letters to members, and keeps who brings any other one waiting.
type stuck chan mail.Message

func (s stuck) Send(ctx context.Context, m mail.Message) error {
	if m.Subject == "stranger" {
		<-ctx.Done()
		return ctx.Err()
	}
	s <- m
	return nil
}

// However much strangers have us write, and however slowly it leaves, members hear
// what happens to their accounts at once.
func TestMembersDoNotWaitForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		sent := make(stuck, 1)
		q := mail.NewQueue(sent, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 1001 {
			q.Put(ctx, mail.Strangers, mail.Message{Subject: "stranger"})
		}
		q.Put(ctx, mail.Members, mail.Message{Subject: "a passkey was added"})
		if n := strings.Count(log.String(), "dropped"); n != 1 {
			t.Errorf("%d were dropped", n)
		}
		go q.Run(ctx)
		began := time.Now() // of the bubble's clock
		if m := <-sent; m.Subject != "a passkey was added" || time.Since(began) > 0 {
			t.Errorf("%q after %v", m.Subject, time.Since(began))
		}
	})
}

// The outbox keeps the newest and not everything.
func TestOutbox(t *testing.T) {
	var o mail.Outbox
	for i := range 150 {
		if err := o.Send(t.Context(), mail.Message{Subject: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if all := o.Messages(); len(all) != 100 || all[0].Subject != "149" {
		t.Errorf("%d messages, the first is %s", len(all), all[0].Subject)
	}
}
