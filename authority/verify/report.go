package verify

// Result of one check.
type Result string

// A check that was not made is Skipped, so that a reader of the report is never
// left thinking it passed. What is Flagged is wrong, and the rest holds all the same.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
	Flagged Result = "flagged"
)

// Check is one rule that was looked at. Name is short and stable; Detail is for
// people and holds single claims, never a token or a part of one.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Detail string `json:"detail"`
}

// Report lists the checks in the order they were made. Up to the signature the
// first failure ends the list, since nothing behind it can be believed; after
// it all claims are judged, so that one look shows everything that is wrong.
type Report []Check

// judge notes a check and hands its error back.
func (r *Report) judge(name string, err error, detail string) error {
	if err != nil {
		*r = append(*r, Check{name, Failed, err.Error()})
		return err
	}
	*r = append(*r, Check{name, Passed, detail})
	return nil
}

func (r *Report) flag(name, why string) {
	*r = append(*r, Check{name, Flagged, why})
}

func (r *Report) skip(name, why string) {
	*r = append(*r, Check{name, Skipped, why})
}
