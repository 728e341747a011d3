package witness

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign.dev/authority/receiptlog"
	"countersign.dev/authority/verify"
	"countersign.dev/authority/witness"
)

// line is a checkpoint as the Brand signed it, and the note in which the witness did.
type line struct {
	JWS  string `json:"jws"`
	Note string `json:"note"`
	// Again is the note of the last look at which the log still stood so. The first
	// one stays beside it: what it says of when the entries were there is worth most.
	Again     string `json:"again,omitempty"`
	ClockBack string `json:"clockBack,omitempty"` // why the log's clock cannot have been right
}

// memory is the file with the lines of one log.
type memory struct{ path string }

// remembered is the last line, and when the log was last seen to stand so.
type remembered struct {
	witness.Seen
	line line
}

// last reads the last line, which the witness itself must have signed; nil: there is
// none. That the Brand signed it was looked at when it was written, and its keys may
// be others by now. What follows the last line break was cut off while it was
// written, and so nobody has seen it.
func (m memory) last(key witness.Key) (*remembered, error) {
	whole, err := m.read()
	if err != nil || len(whole) == 0 {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	var l line
	if err := json.Unmarshal(lines[len(lines)-1], &l); err != nil {
		return nil, m.broken(err)
	}
	var says receiptlog.Checkpoint
	parts := strings.Split(l.JWS, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err == nil {
		err = json.Unmarshal(payload, &says)
	}
	if err != nil {
		return nil, m.broken(err)
	}
	c := verify.LogCheckpoint{Log: says.Log, Size: says.Size}
	var ok bool
	if c.Root, ok = receiptlog.Hash(says.Root); !ok {
		return nil, m.broken(errors.New("no root"))
	}
	if c.At, err = time.Parse(time.RFC3339, says.TS); err != nil {
		return nil, m.broken(err)
	}
	// As of any time: if our own clock went back, Continues says so.
	at, err := key.Open(l.Note, c, time.Unix(1<<40, 0))
	if err == nil && l.Again != "" {
		at, err = key.Open(l.Again, c, time.Unix(1<<40, 0))
	}
	if err != nil {
		return nil, m.broken(err)
	}
	return &remembered{witness.Seen{Checkpoint: c, At: at}, l}, nil
}

func (m memory) broken(err error) error {
	return fmt.Errorf("the last line of %s is not what this witness wrote: %w", m.path, err)
}

// read returns the whole lines.
func (m memory) read() ([]byte, error) {
	raw, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was seen before: %w", err)
	}
	return raw[:bytes.LastIndexByte(raw, '\n')+1], nil
}

// replace writes the last line anew. Whoever reads the file meanwhile, or after a
// power cut, has it as it was or as it is, and never without that line.
func (m memory) replace(l line) error {
	whole, err := m.read()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	before := whole[:bytes.LastIndexByte(bytes.TrimSuffix(whole, []byte("\n")), '\n')+1]
	info, err := os.Stat(m.path)
	if err != nil {
		return fmt.Errorf("remember what was seen: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(m.path), "."+filepath.Base(m.path)+".*")
	if err != nil {
		return fmt.Errorf("remember what was seen: %w", err)
	}
	defer os.Remove(file.Name()) // nothing is left to remove once it is renamed
	_, err = file.Write(slices.Concat(before, raw, []byte("\n")))
	err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), m.path)
	}
	if err != nil {
		return fmt.Errorf("remember what was seen: %w", err)
	}
	m.settle()
	return nil
}

// settle makes the file's name last, where the system can and has to be asked.
func (m memory) settle() {
	if folder, err := os.Open(filepath.Dir(m.path)); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}

// add writes a line so that it is still there after a power cut.
func (m memory) add(l line) error {
	whole, err := m.read()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(m.path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("remember what was seen: %w", err)
	}
	err = file.Truncate(int64(len(whole)))
	if err == nil {
		_, err = file.WriteAt(append(raw, '\n'), int64(len(whole)))
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("remember what was seen: %w", err)
	}
	m.settle()
	return nil
}
