package statuslist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Status is what a list says of one index.
type Status uint8

// The statuses of the draft's registry. What else two bits can say is for the
// application to define, and we define nothing.
const (
	Valid     Status = 0
	Invalid   Status = 1 // for ever
	Suspended Status = 2 // for now
)

func (s Status) String() string {
	switch s {
	case Valid:
		return "VALID"
	case Invalid:
		return "INVALID"
	case Suspended:
		return "SUSPENDED"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Bits is how many bits an index has.
const Bits = 2

// MaxSize is how many bytes a list may have once it is decompressed: four
// million indexes, thirty times what we publish.
const MaxSize = 1 << 20

// ErrMalformed says that a text is not a list.
var ErrMalformed = errors.New("not a status list")

// perByte is how many indexes share a byte; the lowest has the lowest bits.
const (
	perByte = 8 / Bits
	mask    = 1<<Bits - 1
)

// List holds the status of every index from 0 to Len()-1.
type List struct{ raw []byte }

// New returns a list in which size indexes, rounded up to whole bytes, have the
// same status.
func New(size int, all Status) List {
	var fill byte
	for i := range perByte {
		fill |= byte(all&mask) << (Bits * i)
	}
	return List{bytes.Repeat([]byte{fill}, (size+perByte-1)/perByte)}
}

// Len is how many indexes there are.
func (l List) Len() int { return len(l.raw) * perByte }

// Set changes the status of one index, which must be in the list.
func (l List) Set(index int, s Status) {
	shift := Bits * (index % perByte)
	b := &l.raw[index/perByte]
	*b = *b&^(mask<<shift) | byte(s&mask)<<shift
}

// At returns the status of an index; false where the list has no such index.
func (l List) At(index int) (Status, bool) {
	if index < 0 || index >= l.Len() {
		return 0, false
	}
	return Status(l.raw[index/perByte] >> (Bits * (index % perByte)) & mask), true
}

// Encode writes the list as the draft's lst.
func (l List) Encode() (string, error) {
	var out strings.Builder
	text := base64.NewEncoder(base64.RawURLEncoding, &out)
	z := zlib.NewWriter(text)
	_, err := z.Write(l.raw)
	if err = errors.Join(err, z.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("encode status list: %w", err)
	}
	return out.String(), nil
}

// Decode reads a lst. A text that is not one, that has more than MaxSize bytes
// in it or anything behind its end is ErrMalformed.
func Decode(lst string) (List, error) {
	// Go's decoder skips line breaks: one list could be written in many ways.
	if strings.ContainsAny(lst, "\r\n") {
		return List{}, fmt.Errorf("%w: line break in it", ErrMalformed)
	}
	packed, err := base64.RawURLEncoding.Strict().DecodeString(lst)
	if err != nil {
		return List{}, fmt.Errorf("%w: not base64url", ErrMalformed)
	}
	in := bytes.NewReader(packed) // read byte by byte, so what is left over is known
	z, err := zlib.NewReader(in)
	if err != nil {
		return List{}, fmt.Errorf("%w: not zlib", ErrMalformed)
	}
	// A few bytes can become gigabytes: nothing is read beyond the bound.
	raw, err := io.ReadAll(io.LimitReader(z, MaxSize+1))
	switch {
	case err != nil:
		return List{}, fmt.Errorf("%w: not zlib", ErrMalformed)
	case len(raw) > MaxSize:
		return List{}, fmt.Errorf("%w: more than %d KiB", ErrMalformed, MaxSize>>10)
	case in.Len() > 0:
		return List{}, fmt.Errorf("%w: something behind its end", ErrMalformed)
	}
	return List{raw}, nil
}
