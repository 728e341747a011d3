package surface

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Send answers POST message:send. An error that is a *Problem is what the agent
// reads; it is the caller of the Operation who writes it.
type Send func(http.ResponseWriter, *http.Request) error

// Operation answers a call whose caller is known: message:send with send, and the
// others by themselves.
type Operation func(w http.ResponseWriter, r *http.Request, send Send) error

// Find is the operation of A2A 1.0 at a path relative to the interface URL. Where
// there is none it answers 404 or 405 itself, without a body of A2A and before
// anybody asked who calls.
func Find(w http.ResponseWriter, r *http.Request, path string) (Operation, bool) {
	by := operations(path)
	if by == nil {
		http.NotFound(w, r)
		return nil, false
	}
	do := by[r.Method]
	if do == nil {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(by)), ", "))
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return nil, false
	}
	return do, true
}

// operations are those at a path, by method; nil: there is nothing.
func operations(path string) map[string]Operation {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	segments := strings.Split(path, "/")
	if slices.Contains(segments, "") {
		return nil
	}
	switch segments[0] {
	case "message:send":
		if len(segments) == 1 {
			return map[string]Operation{post: func(w http.ResponseWriter, r *http.Request, send Send) error { return send(w, r) }}
		}
	case "message:stream":
		if len(segments) == 1 {
			return map[string]Operation{post: refuse(ErrUnsupported)}
		}
	case "extendedAgentCard":
		if len(segments) == 1 {
			return map[string]Operation{get: refuse(ErrUnsupported)}
		}
	case "tasks":
		if len(segments) == 1 {
			return map[string]Operation{get: listTasks}
		}
		return task(segments[1:], get, post, del)
	}
	return nil
}

// task are the operations on one task. There is none: a turn is over when it is
// answered.
func task(segments []string, get, post, del string) map[string]Operation {
	id, verb, custom := strings.Cut(segments[0], ":")
	switch {
	case id == "" || custom && len(segments) > 1:
	case len(segments) == 1 && !custom:
		return map[string]Operation{get: refuse(ErrTask)}
	case len(segments) == 1 && verb == "cancel":
		return map[string]Operation{post: refuse(ErrTask)}
	case len(segments) == 1 && verb == "subscribe":
		return map[string]Operation{get: refuse(ErrUnsupported), post: refuse(ErrUnsupported)}
	case len(segments) == 2 && segments[1] == "pushNotificationConfigs":
		return map[string]Operation{get: refuse(ErrPush), post: refuse(ErrPush)}
	case len(segments) == 3 && segments[1] == "pushNotificationConfigs":
		return map[string]Operation{get: refuse(ErrPush), del: refuse(ErrPush)}
	}
	return nil
}

func refuse(p *Problem) Operation {
	return func(http.ResponseWriter, *http.Request, Send) error { return p }
}
