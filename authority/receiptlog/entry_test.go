package receiptlog

import "testing"

// Whoever verifies without us computes the same hashes; and no two things are sealed
// alike, whatever their texts are when they are put together.
func TestSealsAreApart(t *testing.T) {
	salt := []byte("0123456789abcdef")
	// Of another program: SHA-256 of 7 "message" 16 "0123456789abcdef" 2 "ab" 1 "c".
	const want = "40901ElaPPpPe_vhoxwN8Ls8wQRhrJ80h5ZrfDgGqlo"
	message := SealMessage(salt, "ab", "c")
	if message != want {
		t.Errorf("SHA-256 over the lengths and texts is %s", message)
	}
	for name, other := range map[string]string{
		"texts moved":     SealMessage(salt, "a", "bc"),
		"another salt":    SealMessage([]byte("0123456789abcdeg"), "ab", "c"),
		"salt moved":      SealMessage(salt[:15], "fab", "c"),
		"another message": SealMessage(salt, "ab", "d"),
		"empty at an end": SealMessage(salt, "abc", ""),
	} {
		if other == message {
			t.Errorf("%s: sealed alike", name)
		}
	}
	// The one text is what a receipt of it would seal, but for the purpose.
	if seal("message", salt, "x") == SealReceipt(salt, "x") {
		t.Error("a message seals like a receipt")
	}
}
