package demoidp

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"

	"golang.org/x/text/language"
)

// loginView is what differs between two showings of the login page.
type loginView struct {
	Username string
	Wrong    bool

	Brand, Hint, Action, Cancel string
	Words                       words
}

// words are the page's own, in one language.
type words struct {
	Lang, Title, Username, Password, SignIn, Cancel, Wrong, Gone, Home string
}

// locales and wordings belong together, position by position.
var (
	locales  = []language.Tag{language.English, language.German}
	matcher  = language.NewMatcher(locales)
	wordings = []words{
		{
			Lang: "en", Title: "Sign in", Username: "User name", Password: "Password", SignIn: "Sign in", Cancel: "Cancel",
			Wrong: "That user name and password do not belong together. Try again.",
			Gone:  "This sign-in is over. Go back to where you came from and start again.",
			Home:  "You come here when another site asks you to sign in.",
		},
		{
			Lang: "de", Title: "Anmelden", Username: "Benutzername", Password: "Passwort", SignIn: "Anmelden", Cancel: "Abbrechen",
			Wrong: "Benutzername und Passwort passen nicht zusammen. Versuche es noch einmal.",
			Gone:  "Diese Anmeldung ist vorbei. Gehe zurück und beginne noch einmal.",
			Home:  "Du kommst hierher, wenn eine andere Seite dich um die Anmeldung bittet.",
		},
	}
)

var frame = template.Must(template.New("frame").Parse(`<!doctype html>
<html lang="{{.Words.Lang}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Words.Title}} – {{.Brand}}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><p>{{.Brand}}</p></header>
<main>{{block "main" .}}{{end}}</main>
</body>
</html>
`))

var loginPage = template.Must(template.Must(frame.Clone()).Parse(`{{define "main"}}
<h1>{{.Words.Title}}</h1>
{{if .Wrong}}<p id="wrong" role="alert">{{.Words.Wrong}}</p>{{end}}
{{with .Hint}}<p class="hint">{{.}}</p>{{end}}
<form method="post" action="{{.Action}}">
<label for="username">{{.Words.Username}}</label>
<input id="username" name="username" value="{{.Username}}" autocomplete="username" autocapitalize="none" spellcheck="false" required{{if not .Username}} autofocus{{end}}>
<label for="password">{{.Words.Password}}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required{{if .Username}} autofocus{{end}}{{if .Wrong}} aria-describedby="wrong"{{end}}>
<button type="submit">{{.Words.SignIn}}</button>
</form>
<p><a href="{{.Cancel}}">{{.Words.Cancel}}</a></p>
{{end}}`))

var (
	gonePage = template.Must(template.Must(frame.Clone()).Parse(`{{define "main"}}<h1>{{.Words.Title}}</h1><p>{{.Words.Gone}}</p>{{end}}`))
	homePage = template.Must(template.Must(frame.Clone()).Parse(`{{define "main"}}<h1>{{.Brand}}</h1><p>{{.Words.Home}}</p>{{end}}`))
)

func (p *Provider) page(w http.ResponseWriter, r *http.Request, status int, request *authRequest, view loginView) {
	query := "?id=" + url.QueryEscape(request.id)
	view.Brand, view.Hint = p.config.Name, p.config.Hint
	view.Action, view.Cancel = "/login"+query, "/login/cancel"+query
	view.Words = wordsFor(r, request.asked.UILocales...)
	// Browsers hold every redirect of a form post against form-action, so the way
	// back to the client has to be named.
	w.Header().Set("Content-Security-Policy", policy(origin(request.asked.RedirectURI)))
	write(w, status, loginPage, view)
}

// problem is for people who come too late or by a wrong link.
func (p *Provider) problem(w http.ResponseWriter, r *http.Request, status int) {
	write(w, status, gonePage, loginView{Brand: p.config.Name, Words: wordsFor(r)})
}

func (p *Provider) home(w http.ResponseWriter, r *http.Request) {
	write(w, http.StatusOK, homePage, loginView{Brand: p.config.Name, Words: wordsFor(r)})
}

func wordsFor(r *http.Request, wanted ...language.Tag) words {
	accepted, _, _ := language.ParseAcceptLanguage(r.Header.Get("Accept-Language")) // none is fine
	_, i, _ := matcher.Match(append(wanted, accepted...)...)
	return wordings[i]
}

func write(w http.ResponseWriter, status int, page *template.Template, view loginView) {
	var text bytes.Buffer
	if err := page.Execute(&text, view); err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w) // the reader may be gone
}

func (p *Provider) style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write([]byte(":root { --brand: " + p.config.Colour + "; }\n" + stylesheet))
}

// stylesheet makes the page look like nothing of Countersign's: another site.
const stylesheet = `
* { box-sizing: border-box; }
body { margin: 0; font: 1.05rem/1.5 Georgia, "Times New Roman", serif; color: #222; background: #f4f1ea; }
header { background: var(--brand); color: #fff; text-align: center; }
header p { margin: 0; padding: 2rem 1rem; font-size: 1.6rem; letter-spacing: .06em; }
main { max-width: 24rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-weight: normal; font-size: 1.4rem; }
label { display: block; margin-top: 1rem; }
input, button { width: 100%; min-height: 2.75rem; font: inherit; padding: .4rem .7rem; border: 1px solid #767066; border-radius: 0; }
button { margin-top: 1.5rem; background: var(--brand); color: #fff; border-color: var(--brand); cursor: pointer; }
:focus-visible { outline: 3px solid #b45309; outline-offset: 2px; }
a { color: #222; display: inline-block; padding: .6rem 0; }
.hint { border-left: 3px solid var(--brand); padding-left: .8rem; }
[role=alert] { border-left: 3px solid #a3161c; padding-left: .8rem; }
`

func (p *Provider) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(""))
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func policy(client string) string {
	p := "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if client != "" {
		p += " " + client
	}
	return p
}

func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
