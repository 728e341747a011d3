package canonical

import (
	"errors"
	"testing"
)

// The forms of RFC 8785 §3.2, and those it cannot have.
func TestOneFormOrNone(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"order and space", ` { "b" : 1 , "a" : [ true , null ] } `, `{"a":[true,null],"b":1}`},
		{"UTF-16 order", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3}`, "{\"\u20ac\":3,\"\U0001F600\":2,\"\ufb33\":1}"},
		{"numbers", `[1.0,1E2,-0,0.000001,1e-7,1e21,333333333.33333329]`, `[1,100,0,0.000001,1e-7,1e+21,333333333.3333333]`},
		{"escapes", `"<\u003c\/\u2028\u000f\n"`, "\"<</\u2028\\u000f\\n\""},
		{"the largest", `9007199254740991`, `9007199254740991`},
		{"beyond doubles", `9007199254740993`, ""},
		{"beyond doubles, below zero", `{"a":[-9007199254740993]}`, ""},
		{"too large", `1e400`, ""},
		{"twice", `{"a":1,"\u0061":2}`, ""},
		{"not UTF-8", "\"\xff\"", ""},
		{"half a pair", `"\ud83d"`, ""},
		{"two values", `1 2`, ""},
		{"a power that is written out", `1e20`, ""},
		{"a power that is not", `1e21`, `1e+21`},
		{"nothing", ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := JSON([]byte(tt.in))
			if string(got) != tt.want || (tt.want == "") != errors.Is(err, ErrNoForm) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// The form of a form is itself.
func FuzzFormIsStable(f *testing.F) {
	f.Add(`{"b":[1,2.5e3,"ä\u2028"],"a":{}}`)
	f.Fuzz(func(t *testing.T, in string) {
		once, err := JSON([]byte(in))
		if err != nil {
			return
		}
		if twice, err := JSON(once); err != nil || string(twice) != string(once) {
			t.Errorf("%q then %q, %v", once, twice, err)
		}
	})
}
