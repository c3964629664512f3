package inputfile

import (
	"slices"
	"strings"
)

// JoinReasons combines errors about one file into an error of one line, with semicolons between
// them. It returns nil if all errors are nil.
func JoinReasons(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &joined{errs}
}

// joined is a list of errors whose message has one line.
type joined struct{ errs []error }

func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j *joined) Unwrap() []error { return j.errs }
