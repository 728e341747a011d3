package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign.dev/authority/receiptlog"
)

// tampered is the file after what the script says was done to it, three bytes a deed.
func tampered(lines []string, script []byte) string {
	lines = slices.Clone(lines)
	const deed = 3
	for len(script) >= deed && len(lines) > 0 {
		a, b := int(script[1])%len(lines), int(script[2])
		line := []byte(lines[a])
		switch script[0] % 9 {
		case 0: // a bit, anywhere
			at := int(script[1])<<8 | b
			text := []byte(strings.Join(lines, "") + "\n")
			text[at%len(text)] ^= 1 << (script[0] / 9 % 8)
			lines = strings.SplitAfter(string(text), "\n")
		case 1:
			lines = slices.Delete(lines, a, a+1)
		case 2:
			lines = slices.Insert(lines, b%(len(lines)+1), lines[a])
		case 3:
			c := b % len(lines)
			lines[a], lines[c] = lines[c], lines[a]
		case 4: // the rest is cut off
			lines[a] = string(line[:b*len(line)/255])
			lines = lines[:a+1]
		case 5:
			lines[a] = string(slices.Insert(line, b*len(line)/256, byte(b)))
		case 6:
			lines[a] = strings.Replace(lines[a], "false", "true", 1+b%2)
		case 7: // part of another line
			other := lines[b%len(lines)]
			half := min(len(line), len(other)) / 2
			lines[a] = string(line[:half]) + other[half:]
		case 8: // erased, lawfully: only that no text is left
			if _, rest, there := strings.Cut(lines[a], `"entry":`); there {
				e, _, _ := strings.Cut(rest, `,"jws"`)
				lines[a] = `{"entry":` + e + "}\n"
			}
		}
		script = script[deed:]
	}
	return strings.Join(lines, "")
}

// R75: whatever is done to the file of a log – edited, cut off, reordered, lines gone or
// doubled – is found from a checkpoint that somebody remembered. Only that receipts are
// gone may be lawful, and then they are counted.
func FuzzATamperedLog(f *testing.F) {
	b := newBook(f)
	const entries = 5
	for n := range entries {
		b.write(b.says(func(c *receiptlog.Claims) { c.TS = fmt.Sprintf("2026-11-20T12:00:00.%03dZ", n) }), func(e *receiptlog.Entry, _ map[string]string) {
			e.V, e.At = receiptlog.Version, fmt.Sprintf("2026-11-20T12:00:00.%03dZ", n)
			e.Began, e.Logged = e.At, e.At
			e.Text, e.Reply = receiptlog.SealText([]byte("salt"), "a"), receiptlog.SealReply([]byte("salt"), "b")
		})
	}
	remembered := LogCheckpoint{Size: entries, Root: b.edge.Root()}
	honest := strings.Join(b.lines, "")
	if _, _, err := WholeLog(b.keys, strings.NewReader(honest), Archive{}, remembered); err != nil {
		f.Fatal(err)
	}
	for kind := range byte(9) {
		f.Add([]byte{kind, 1, 200})
		f.Add([]byte{kind, 4, 17, 3, 0, 1})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		const deeds = 4 * 3
		text := tampered(b.lines, script[:min(len(script), deeds)])
		if text == honest {
			return
		}
		sum, _, err := WholeLog(b.keys, strings.NewReader(text), Archive{}, remembered)
		if err == nil && sum.Erased == 0 {
			t.Errorf("not found: %q", text)
		}
		if err == nil && sum.Erased > 0 && (sum.Entries != entries || sum.Root != remembered.Root || sum.Receipts+sum.Erased != entries) {
			t.Errorf("%+v of %q", sum, text)
		}
	})
}
