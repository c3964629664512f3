package clocks

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
)

func TestSkewParams(t *testing.T) {
	faulttest.Params(t, Skew, []faulttest.Case{
		{Text: "ahead: 10s"},
		{Text: "ahead: -300ms"},
		{Text: "{}", Want: "s.yaml: clock-skew.ahead: found 0s, or no duration; expected an absolute value of 10ms to 1h0m0s"},
		{Text: "ahead: -2h", Want: "s.yaml:1:8: clock-skew.ahead: -2h0m0s is out of bounds; expected an absolute value of 10ms to 1h0m0s"},
	})
}
