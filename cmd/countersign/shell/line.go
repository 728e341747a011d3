package shell

import (
	"os"
	"path/filepath"
	"strings"
)

// Line is a command of this program, ready to be pasted.
func Line(words ...string) string {
	line := []string{Program()}
	for _, word := range words {
		line = append(line, Quote(word))
	}
	return strings.Join(line, " ")
}

// Program is how this program was started, as a person would type it again.
func Program() string {
	_, err := os.Stat(filepath.Join("cmd", "countersign", "main.go"))
	return program(os.Args[0], err == nil)
}

// Note ends a text that calls this program countersign, where that is not what a
// person has to type.
func Note() string {
	if typed := Program(); typed != "countersign" {
		return "\nHere, type " + typed + " for countersign.\n"
	}
	return ""
}

func program(started string, atTheRoot bool) string {
	switch {
	case !isGoRun(started):
		return Quote(started)
	case atTheRoot:
		return "go run ./cmd/countersign"
	}
	// From another folder of the source.
	return "go run countersign.dev/cmd/countersign"
}

// isGoRun tells whether go run built us: it builds into a folder of its own.
func isGoRun(path string) bool {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if m, _ := filepath.Match("go-build*", filepath.Base(dir)); m {
			return true
		}
	}
	return false
}

// Quote writes a word so that a shell reads exactly it. Some of the words come
// from strangers, such as an address on a Brand's card: whatever is not known to
// be harmless is quoted.
func Quote(word string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !harmless(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
