package verify

import "testing"

// Two parsers must never read two different things out of one signed text.
func TestObjectsHaveOneReading(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		ok       bool
	}{
		{"plain", `{"a":1,"b":{"a":[1,{"a":2},{"a":3}]}}`, true},
		{"same name at another depth", `{"a":{"a":{"a":1}}}`, true},
		{"same text as name and value", `{"a":"a","b":"a"}`, true},
		{"upper and lower case are two names", `{"iss":1,"Iss":2}`, true},
		{"twice", `{"a":1,"a":1}`, false},
		{"twice, nested values between", `{"a":{"x":[]},"b":[{}],"a":1}`, false},
		{"twice inside a list", `{"a":[{"b":1,"b":2}]}`, false},
		{"twice, one escaped", `{"a":1,"\u0061":2}`, false},
		{"broken UTF-8", "{\"a\xff\":1}", false},
		{"rest behind it", `{"a":1}{}`, false},
		{"list", `[]`, false},
		{"null", `null`, false},
		{"nothing", ``, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseObject([]byte(tt.in)); (err == nil) != tt.ok {
				t.Errorf("%v", err)
			}
		})
	}
}

// M4: a name that Go would read as another's is none: halves of surrogate pairs all
// become U+FFFD.
func TestNamesAreWrittenExactly(t *testing.T) {
	for text, want := range map[string]bool{
		`"alex"`: true, `"\ud83d\ude00"`: true, `"\ud800"`: false, `"a\udc01"`: false, `"\ufffd"`: false, `""`: false, `1`: false, `null`: false,
	} {
		if _, err := (members{"sub": []byte(text)}).text("sub"); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Left-over bits, padding and line breaks would let one part be written in
// several ways.
func TestPartsHaveOneSpelling(t *testing.T) {
	for part, ok := range map[string]bool{"e30": true, "e31": false, "e30=": false, "e3\n0": false, "e3 0": false, "+/+/": false, "": false} {
		if _, err := decodePart(part); (err == nil) != ok {
			t.Errorf("%q: %v", part, err)
		}
	}
}

func TestTimesAreNumbersInRange(t *testing.T) {
	m := members{
		"whole": []byte(`1790000000`), "fraction": []byte(`1790000000.5`),
		"text": []byte(`"1790000000"`), "negative": []byte(`-1`), "huge": []byte(`1e300`), "null": []byte(`null`),
	}
	for name, ok := range map[string]bool{"whole": true, "fraction": true, "text": false, "negative": false, "huge": false, "null": false, "absent": false} {
		got, err := m.instant(name)
		if (err == nil) != ok || ok && got.Unix() != 1790000000 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
