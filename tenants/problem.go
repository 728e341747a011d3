package tenants

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one mistake in what a Brand wants to set, said so that whoever made
// it can mend it.
type Problem struct {
	Field string `json:"field"` // as the API and the file call it
	Say   string `json:"say"`   // what is wrong
	Mend  string `json:"mend"`  // what to do
	// Mistake names what is wrong and About what that sentence speaks of, for a
	// door that says it in another language. Empty: it has no other words yet.
	Mistake Mistake   `json:"-"`
	About   [2]string `json:"-"`
}

// Mistake is a kind of Problem. In About stands what is given in brackets.
type Mistake string

// The mistakes that have words in every language.
const (
	NotUTF8          Mistake = "utf8"
	Spaced           Mistake = "spaced"
	Missing          Mistake = "missing"
	TooLong          Mistake = "long" // [most characters]
	Unseen           Mistake = "unseen"
	OutOfBounds      Mistake = "bounds" // [least, most]
	NoKnownWord      Mistake = "word"   // [those known]
	NoColour         Mistake = "colour"
	TooMany          Mistake = "many"  // [most]
	Twice            Mistake = "twice" // [what]
	NoTag            Mistake = "tag"
	OtherTag         Mistake = "othertag" // [how it is written]
	NoChoices        Mistake = "choices"  // [most]
	NoneOfThem       Mistake = "none"
	Untranslated     Mistake = "untranslated" // [scope, language]
	NoURL            Mistake = "url"
	UserInURL        Mistake = "user"
	Fragment         Mistake = "fragment"
	NoHTTPS          Mistake = "https"
	NotYourHost      Mistake = "host" // [host]
	NoScopeID        Mistake = "scopeid"
	AlikeScope       Mistake = "alike"      // [the other scope]
	TooManyScope     Mistake = "scopes"     // [most]
	LacksWords       Mistake = "lackswords" // [language]
	NotEachOnce      Mistake = "order"
	NoPicture        Mistake = "picture"
	EmptyPicture     Mistake = "nopicture"
	LargePicture     Mistake = "large"
	Damaged          Mistake = "damaged"
	ManyPixels       Mistake = "pixels"
	IsSVG            Mistake = "svg"
	NoAgent          Mistake = "agent"
	Unproven         Mistake = "unproven"
	NoHost           Mistake = "nohost"
	ManyDomains      Mistake = "domains"
	OwnersAlone      Mistake = "owners"
	NoIssuer         Mistake = "issuer"
	DiscoveryURL     Mistake = "discovery"
	MailSubject      Mistake = "mailsubject"
	SecretAndKey     Mistake = "secretandkey"
	LongSecret       Mistake = "longsecret"
	NoScopeWord      Mistake = "noscope"
	ForOwnPage       Mistake = "ownpage"
	StandsOn         Mistake = "standson" // [host]
	NotTheID         Mistake = "notid"
	AnothersURL      Mistake = "anothers"
	NotOurs          Mistake = "notours"
	QueryInURL       Mistake = "query"
	SlashAtEnd       Mistake = "slash"
	NotSimplest      Mistake = "simplest"
	OnOurHost        Mistake = "ourhost"
	NoProvider       Mistake = "noprovider"
	SharedProvider   Mistake = "sharedprovider"
	AnothersProvider Mistake = "anothersprovider"
	NotItsAudience   Mistake = "notitsaudience"
	NoID             Mistake = "noid"
	AudienceTaken    Mistake = "audiencetaken"
	NoKeysURL        Mistake = "nokeysurl"
	NamesReturn      Mistake = "namesreturn" // [the parameter]
	OurOrigin        Mistake = "ourorigin"
	ForProviders     Mistake = "forproviders"
	NotCalled        Mistake = "notcalled"
	NoRights         Mistake = "norights"
	ManyHooks        Mistake = "hooks" // [most]
	NoSecret         Mistake = "nosecret"
	NotAsBrowsers    Mistake = "asbrowsers" // [how it is written]
)

// Problems are all mistakes of one change, told together. A change with any of
// them changes nothing.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Field + ": " + one.Say + ": " + one.Mend
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(field, say, mend string) {
	*p = append(*p, Problem{Field: field, Say: say, Mend: mend})
}

// kind names the mistake that was added last.
func (p Problems) kind(m Mistake, about ...string) {
	last := &p[len(p)-1]
	last.Mistake = m
	copy(last.About[:], about)
}

// without leaves out what is said of fields that could not even be read, and of
// what hangs on them: grant_days_default on grant_days.
func (p Problems) without(unread Problems) Problems {
	return slices.DeleteFunc(p, func(one Problem) bool {
		return slices.ContainsFunc(unread, func(u Problem) bool { return strings.HasPrefix(one.Field, u.Field) })
	})
}

// err is nil where there is none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// words checks a line that people will read. Marks that nobody sees could make
// one name read as another.
func (p *Problems) words(field, text string, least, most int) {
	n := utf8.RuneCountInString(text)
	switch {
	case !utf8.ValidString(text):
		p.add(field, "is not UTF-8", "save the text as UTF-8")
		p.kind(NotUTF8)
	case strings.TrimSpace(text) != text:
		p.add(field, "begins or ends with a space", "take it away")
		p.kind(Spaced)
	case n < least:
		p.add(field, "is missing", "write it")
		p.kind(Missing)
	case n > most:
		p.add(field, "is too long", "use "+count(most)+" characters at most")
		p.kind(TooLong, count(most))
	case strings.ContainsFunc(text, Invisible):
		p.add(field, "holds a line break or an invisible character", "write it again, in one line")
		p.kind(Unseen)
	}
}

// Invisible tells characters that nobody sees, and those that turn round or break
// what stands beside them: no name holds them.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// between checks a number.
func (p *Problems) between(field string, n, least, most int, unit string) {
	if n < least || n > most {
		p.add(field, "is out of bounds", "give "+count(least)+" to "+count(most)+" "+unit)
		p.kind(OutOfBounds, count(least), count(most))
	}
}

// oneOf checks a word.
func (p *Problems) oneOf(field, word string, known ...string) {
	for _, k := range known {
		if word == k {
			return
		}
	}
	p.add(field, "is none of the words known here", "use "+strings.Join(known, ", "))
	p.kind(NoKnownWord, strings.Join(known, ", "))
}
