package inputfile

import (
	"errors"
	"io/fs"
	"testing"
)

func TestJoinReasons(t *testing.T) {
	first := errors.New("first")
	for _, test := range []struct {
		name string
		errs []error
		want string
	}{
		{"none", nil, ""},
		{"only nil", []error{nil, nil}, ""},
		{"one", []error{nil, first}, "first"},
		{"several", []error{first, nil, fs.ErrExist}, "first; file already exists"},
	} {
		got := ""
		err := JoinReasons(test.errs...)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: error %q, want %q", test.name, got, test.want)
		}
		if test.name == "several" && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: the error does not wrap fs.ErrExist", test.name)
		}
	}
}
