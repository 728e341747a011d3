package web

import "strings"

// Browser is the family of the browser that says of itself what User-Agent holds,
// and the system it runs on. What is not known is empty: families are few, and
// what is kept of them tells nobody apart.
func Browser(userAgent string) (family, system string) {
	// Each browser names those before it, so the most particular comes first.
	for _, b := range []struct{ mark, name string }{
		{"Edg", "Edge"},
		{"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"},
		{"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"},
		{"Chrome/", "Chrome"},
		{"CriOS/", "Chrome"},
		{"Safari/", "Safari"},
	} {
		if strings.Contains(userAgent, b.mark) {
			family = b.name
			break
		}
	}
	for _, s := range []struct{ mark, name string }{
		{"Windows", "Windows"},
		{"Android", "Android"},
		{"iPhone", "iPhone"},
		{"iPad", "iPad"},
		{"CrOS", "ChromeOS"},
		{"Mac OS X", "macOS"},
		{"Linux", "Linux"},
	} {
		if strings.Contains(userAgent, s.mark) {
			system = s.name
			break
		}
	}
	return family, system
}
