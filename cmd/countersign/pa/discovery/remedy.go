package discovery

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"countersign.dev/cmd/countersign/shell"
)

// Remedy says what a person at a shell can do about an error of finding or
// reaching a Brand; nothing where the error says enough.
func Remedy(err error) string {
	status, ok := errors.AsType[StatusError](err)
	if ok && status.Status == http.StatusNotFound && strings.HasSuffix(status.From, cardPath) {
		return fmt.Sprintf("Is this the interface URL? %s prints it.", shell.Line("dev"))
	}
	if errors.Is(err, ErrCard) {
		return "Is this the interface URL of a Brand that has delegation?"
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "That server speaks plain http: begin with http://"
	}
	return silence(err)
}

// silence is about nobody having answered at all.
func silence(err error) string {
	call, ok := errors.AsType[*url.Error](err)
	if !ok {
		return ""
	}
	// Timeouts and broken answers are the server's own trouble.
	if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" {
		return ""
	}
	u, err := url.Parse(call.URL)
	switch {
	case err != nil:
		return ""
	case loopback(u.Hostname()):
		return fmt.Sprintf("Is %s running? It is not answering at %s.", shell.Line("dev"), u.Host)
	}
	return fmt.Sprintf("Nobody answers at %s. Is the address right, and is this machine online?", u.Host)
}
