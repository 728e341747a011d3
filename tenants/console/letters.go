package console

import (
	"context"
	"net/url"

	"countersign.dev/tenants"
	"countersign.dev/tenants/mail"
	"countersign.dev/web/i18n"
)

// letter queues a mail to somebody we know, in the language of the page. args fill
// the gaps.
func (v *visit) letter(to, key string, args ...any) { v.queue(mail.Members, to, key, args) }

// strangersLetter queues one that a visitor has us write to whoever he names.
func (v *visit) strangersLetter(to, key string, args ...any) { v.queue(mail.Strangers, to, key, args) }

func (v *visit) queue(lane mail.Lane, to, key string, args []any) {
	if v.h.post == nil {
		return
	}
	v.h.post.Put(v.ctx(), lane, v.h.compose(v.lang, to, key, args...))
}

func (h *Handler) compose(l i18n.Language, to, key string, args ...any) mail.Message {
	args = append([]any{"url", h.PublicURL + "/console"}, args...)
	return mail.Message{
		To:      to,
		Subject: l.Text("console.mail."+key+".subject", args...),
		Text:    l.Text("console.mail."+key+".text", args...) + "\n\n" + l.Text("console.mail.foot") + "\n",
	}
}

// LinkURL is where the link with the secret leads: what is mailed of it.
func (h *Handler) LinkURL(token string) string {
	return h.PublicURL + "/console/link?" + url.Values{"t": {token}}.Encode()
}

// noticesDue wakes whoever sends notices.
func (h *Handler) noticesDue(id tenants.BrandID) { h.due.join(id) }

// noticesPerTurn is how many of one Brand are sent before the next one's.
const noticesPerTurn = 5

// sendNotices sends what the Brand's owners and members are to hear. A notice is
// done only when the mail server took it. What is left waits for the Brand's next
// turn.
func (h *Handler) sendNotices(ctx context.Context, id tenants.BrandID) {
	b, err := h.Brands.Brand(ctx, id)
	if err != nil {
		return // upkeep says so
	}
	due, err := tenants.ClaimNotices(ctx, h.DB, id, h.now(), noticesPerTurn)
	for _, n := range due {
		if err != nil {
			break
		}
		l := h.Catalogue.Match(n.Language, "")
		if err = h.Mail.Send(ctx, h.noticeLetter(l, b, n)); err == nil {
			err = tenants.NoticeSent(ctx, h.DB, id, n.ID, h.now())
		}
	}
	if err != nil && ctx.Err() == nil {
		// Errors of mail servers quote addresses; the log must not.
		h.Log.WarnContext(ctx, "notices could not be sent", "brand", string(id))
	}
	if err == nil && len(due) == noticesPerTurn {
		h.noticesDue(id)
	}
}

// noticeLetter words the notice. It leads to where something can be done about it.
func (h *Handler) noticeLetter(l i18n.Language, b *tenants.Brand, n tenants.Notice) mail.Message {
	if n.ByName == "" { // nobody who is a member
		n.ByName = asker(l, n.By.Name, n.By.Channel)
	}
	event, at, until := what(l, n.Kind), "members", n.CreatedAt.Add(tenants.ClosedFor)
	if n.Kind == tenants.EventAsked {
		event, at, until = changeKind(l, n.Change), "changes", n.CreatedAt.Add(tenants.PendingLife)
	}
	return h.compose(l, n.Email, noticeKey(n.Kind), "brand", b.Name, "person", n.ByName, "until", l.DateTime(until.UTC()),
		"what", event, "about", n.About, "date", l.DateTime(n.CreatedAt.UTC()), "url", h.PublicURL+pageOf(b.ID, at))
}

// noticeKey is which letter tells of the event.
func noticeKey(event string) string {
	switch event {
	case tenants.EventAsked:
		return "asked"
	case eventRecoveryAsked:
		return "wait"
	case tenants.EventProviderJoined:
		return "joined"
	case tenants.EventClosed:
		return "closed"
	}
	return "notice"
}

// what words an event of the trail; one without words of its own is named.
func what(l i18n.Language, event string) string {
	if t := l.Text("console.event." + event); t != "" {
		return t
	}
	return event
}
