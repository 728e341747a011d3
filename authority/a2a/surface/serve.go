package surface

import (
	"errors"
	"net/http"
	"strings"
)

// Serve is an interface whose URL has this path. What comes is looked at in the
// one order: the path, the method, who calls – protect answers a caller who is not
// let in –, and only then what was sent. A failure that is no *Problem goes to
// wrong, which may be nil, and the agent learns nothing of it.
func Serve(path string, protect func(http.Handler) http.Handler, send Send, wrong func(*http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation, ours := strings.CutPrefix(r.URL.Path, path+"/")
		if !ours {
			http.NotFound(w, r)
			return
		}
		do, ok := Find(w, r, operation)
		if !ok {
			return
		}
		protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := do(w, r, send)
			if err == nil {
				return
			}
			problem, known := errors.AsType[*Problem](err)
			if !known {
				problem = ErrInternal
				if wrong != nil {
					wrong(r, err)
				}
			}
			WriteProblem(w, problem, 0)
		})).ServeHTTP(w, r)
	})
}
