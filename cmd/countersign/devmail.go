package main

import (
	"net/http"
	"strings"

	"countersign.dev/tenants/console/pages"
	"countersign.dev/tenants/mail"
	"countersign.dev/web/static"
	"countersign.dev/web/ui"
)

// mails shows what would have been sent, in development only.
func (f frontDoor) mails(outbox *mail.Outbox) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lang := f.catalogue.Match(r.URL.Query().Get("ui_locales"), r.Header.Get("Accept-Language"))
		heading := lang.Text("console.mails.heading")
		view := pages.MailsView{
			Frame: pages.Frame{Page: ui.Page{
				Lang: lang.Tag, Dir: lang.Dir, Title: heading, Service: "Countersign",
				Operator: ui.Plain(lang.Text("page.operator.alone")), Style: static.URL("console.css"),
			}},
			Heading: ui.Plain(heading), Lead: []ui.Phrase{ui.Plain(lang.Text("console.mails.lead"))},
			Empty: lang.Text("console.mails.empty"),
		}
		for _, m := range outbox.Messages() {
			one := pages.Mail{To: m.To, Subject: m.Subject}
			for line := range strings.Lines(m.Text) {
				if strings.HasPrefix(line, "http://") || strings.HasPrefix(line, "https://") {
					one.Links = append(one.Links, ui.Link{Label: ui.Plain(lang.Text("console.mails.open")), Href: strings.TrimSpace(line)})
					continue
				}
				one.Text += line
			}
			view.Mails = append(view.Mails, one)
		}
		if err := ui.Render(r.Context(), w, http.StatusOK, pages.Mails(view)); err != nil {
			f.log.ErrorContext(r.Context(), "page failed", "route", r.Pattern, "error", err)
		}
	}
}
