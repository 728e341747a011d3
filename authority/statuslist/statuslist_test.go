package statuslist

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// The draft's own example of two bits, which other implementations write too.
const (
	example = "eNo76fITAAPfAgc"
	says    = "120301011233"
)

func TestTheDraftsExampleReadsAsItSays(t *testing.T) {
	l, err := Decode(example)
	if err != nil {
		t.Fatal(err)
	}
	if l.Len() != len(says) {
		t.Fatalf("%d indexes", l.Len())
	}
	written := New(len(says), Valid)
	for i, digit := range says {
		want := Status(digit - '0')
		if got, ok := l.At(i); !ok || got != want {
			t.Errorf("index %d is %v, not %v", i, got, want)
		}
		written.Set(i, want)
	}
	if !bytes.Equal(written.raw, l.raw) {
		t.Errorf("written as %x, not %x", written.raw, l.raw)
	}
}

// B29: a changed index leaves its neighbours as they are, whatever they are.
func TestSetChangesOneIndexAlone(t *testing.T) {
	for _, all := range []Status{Valid, Invalid, Suspended} {
		for index := range 12 {
			l := New(12, all)
			l.Set(index, Suspended)
			l.Set(index, Invalid)
			for i := range l.Len() {
				want := all
				if i == index {
					want = Invalid
				}
				if got, _ := l.At(i); got != want {
					t.Errorf("all %v, %d set: %d is %v", all, index, i, got)
				}
			}
		}
	}
}

// Nobody is let in because his index is not in the list.
func TestAnIndexOutsideHasNoStatus(t *testing.T) {
	l := New(12, Valid)
	for _, index := range []int{-1, -4, 12, 1 << 40} {
		if s, ok := l.At(index); ok {
			t.Errorf("%d is %v", index, s)
		}
	}
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 4, 1 << 17} {
		l := New(size, Valid)
		for i := range size {
			l.Set(i, Status(random.IntN(3)))
		}
		text, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil || !bytes.Equal(back.raw, l.raw) {
			t.Errorf("%d indexes: %v", size, err)
		}
	}
}

func pack(t testing.TB, in io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, zlib.BestSpeed)
	if err == nil {
		_, err = io.Copy(z, in)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestWhatIsNotAListIsRefused(t *testing.T) {
	whole := pack(t, strings.NewReader("list"))
	text := base64.RawURLEncoding.EncodeToString
	broken := bytes.Clone(whole)
	broken[len(broken)-1] ^= 1
	for name, lst := range map[string]string{
		"empty":                "",
		"not base64url":        "eNo76fITAAPfAgc+",
		"padded":               "eNrbuRgAAhcBXQ==",
		"left-over bits":       "eNo76fITAAPfAgd",
		"line break":           "eNo76fIT\nAAPfAgc",
		"no zlib":              text([]byte("plain text")),
		"raw deflate":          text(whole[2:]),
		"a wrong sum":          text(broken),
		"cut off":              text(whole[:len(whole)-5]),
		"something behind it":  text(append(bytes.Clone(whole), 0)),
		"another list behind":  text(append(bytes.Clone(whole), whole...)),
		"a byte over the most": text(pack(t, io.LimitReader(zeros{}, MaxSize+1))),
	} {
		if _, err := Decode(lst); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := Decode(text(pack(t, io.LimitReader(zeros{}, MaxSize)))); err != nil || l.Len() != MaxSize*4 {
		t.Errorf("the biggest list: %v", err)
	}
}

// R54: a list that would become 64 MiB is refused for the price of the bound.
func TestABombDoesNotGoOff(t *testing.T) {
	bomb := base64.RawURLEncoding.EncodeToString(pack(t, io.LimitReader(zeros{}, 64<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(bomb)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
	// A growing buffer is copied a few times on its way to the bound.
	if took := after.TotalAlloc - before.TotalAlloc; took > 16*MaxSize {
		t.Errorf("%d bytes to refuse %d", took, len(bomb))
	}
}

// Whatever comes, nothing panics and nothing grows beyond the bound; what is
// accepted reads the same when we write it.
func FuzzDecode(f *testing.F) {
	f.Add(example)
	f.Add("eNrbuRgAAhcBXQ")
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString(pack(f, io.LimitReader(zeros{}, MaxSize+1))))
	f.Fuzz(func(t *testing.T, lst string) {
		l, err := Decode(lst)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || l.Len() != 0 {
				t.Fatalf("%v, %d indexes", err, l.Len())
			}
			return
		}
		if len(l.raw) > MaxSize {
			t.Fatalf("%d bytes", len(l.raw))
		}
		text, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil || !bytes.Equal(back.raw, l.raw) {
			t.Fatalf("written again: %v", err)
		}
	})
}
