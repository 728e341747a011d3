package pa

import "log/slog"

// Secret is a text that must not reach a log or a screen by accident. Writing it
// out takes a deliberate conversion to string; JSON of ours carries it in clear.
type Secret string

func (Secret) String() string       { return "[hidden]" }
func (Secret) GoString() string     { return "[hidden]" }
func (Secret) LogValue() slog.Value { return slog.StringValue("[hidden]") }
