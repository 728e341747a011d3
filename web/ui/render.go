package ui

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/a-h/templ"
)

// Render builds the page first and writes it only when it is whole: on an error
// nothing was written, and the caller can still answer with another page.
func Render(ctx context.Context, w http.ResponseWriter, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(ctx, &b); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("send page: %w", err)
	}
	return nil
}
