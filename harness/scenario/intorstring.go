package scenario

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// IntOrString is a number, a percentage, or the name of a port. The text "80" in quotes is not a
// number, unlike in [intstr.Parse].
type IntOrString struct {
	number int
	text   string // empty if the value is a number
}

// IntStr converts the value to intstr.IntOrString, the type of fields such as maxSurge in the
// Kubernetes API.
func (x *IntOrString) IntStr() intstr.IntOrString {
	if x.text != "" {
		return intstr.FromString(x.text)
	}
	return intstr.FromInt32(int32(x.number))
}

func (x *IntOrString) String() string {
	switch {
	case x == nil:
		return "nothing"
	case x.text != "":
		return strconv.Quote(x.text)
	}
	return strconv.Itoa(x.number)
}

// Equal reports whether both values are the same number or the same text. Tests compare
// scenarios with go-cmp, which calls Equal.
func (x IntOrString) Equal(other IntOrString) bool { return x == other }

// isShare reports whether the value is valid for maxSurge and maxUnavailable. Valid values are
// numbers of pods, and percentages from 0% to 100%.
func (x *IntOrString) isShare() bool {
	if x.text == "" {
		return 0 <= x.number && x.number <= replicasMax
	}
	digits, ok := strings.CutSuffix(x.text, "%")
	percent, err := strconv.ParseUint(digits, 10, 8)
	return ok && err == nil && percent <= 100
}

// isNone reports whether the value is 0 or 0%. It returns false for nil. A nil value stands for
// the default of the API, which is not 0.
func (x *IntOrString) isNone() bool {
	return x != nil && (x.text == "" && x.number == 0 || x.text != "" && strings.Trim(x.text, "0") == "%")
}

// isPort reports whether the value is valid for targetPort: a port number or a valid port name.
func (x *IntOrString) isPort() bool {
	if x.text == "" {
		return 1 <= x.number && x.number <= portMax
	}
	return len(validation.IsValidPortName(x.text)) == 0
}

func (x *IntOrString) decodeNode(d decoder, from *node, path string) error {
	if text, ok := from.value.(string); ok && text != "" {
		x.text = text
		return nil
	}
	expected := "a whole number, or a percentage such as 25%"
	if strings.HasSuffix(path, "targetPort") {
		expected = "a whole number, or a name such as http"
	}
	var number int32
	if err := d.decode(from, reflect.ValueOf(&number).Elem(), path); err != nil {
		return d.mismatch(from, path, expected)
	}
	x.number = int(number)
	return nil
}

func (x IntOrString) encodeNode() *node {
	if x.text != "" {
		return &node{value: x.text}
	}
	return &node{value: int64(x.number)}
}
