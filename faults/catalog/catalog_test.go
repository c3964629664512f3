package catalog

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

var _ faults.Params = scenario.Params{} // a test run passes scenario.Params to the function New of a fault type

// recordingParams is a faults.Params that records which parameters a fault type decodes, by name.
type recordingParams struct{ fields *[]string }

var errRecorded = errors.New("recorded")

func (a recordingParams) Decode(into any) error {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name != "" {
			*a.fields = append(*a.fields, name)
		}
	}
	return errRecorded
}

func (a recordingParams) Errorf(string, string, ...any) error { return errRecorded }

func (a recordingParams) CheckSteps(string, []scenario.Step) error { return errRecorded }

func (a recordingParams) Resources() []string { return nil }

// TestDocumented checks that every fault type has a description, and documents exactly the
// parameters that it decodes.
func TestDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, faultType := range All {
		if seen[faultType.Name] {
			t.Errorf("fault type %s is listed twice", faultType.Name)
		}
		seen[faultType.Name] = true
		if !strings.HasSuffix(faultType.Description, ".") || !strings.HasSuffix(faultType.Healing, ".") || len(providers.With(faultType.Needs...)) == 0 {
			t.Errorf("%s: expected a Description and a Healing that end with a period, and at least one provider that has the needed capabilities", faultType.Name)
		}
		if (faultType.Sample == nil) != (faultType.NotGeneratedReason != "") {
			t.Errorf("%s: expected either Sample or NotGeneratedReason", faultType.Name)
		}
		var documented, read []string
		for _, param := range faultType.Params {
			documented = append(documented, param.Name)
			if !strings.HasSuffix(param.Description, ".") || param.Bounds == "" {
				t.Errorf("%s.%s: expected a Description that ends with a period, and Bounds", faultType.Name, param.Name)
			}
		}
		if _, err := faultType.New(recordingParams{&read}); !errors.Is(err, errRecorded) {
			t.Errorf("New of %s: error %v, want the error of recordingParams", faultType.Name, err)
		}
		if diff := cmp.Diff(documented, read); diff != "" {
			t.Errorf("%s: parameters (-documented +read):\n%s", faultType.Name, diff)
		}
	}
}

func TestFind(t *testing.T) {
	for _, faultType := range All {
		if found, err := Find(faultType.Name); err != nil || found.Name != faultType.Name {
			t.Errorf("Find returned %q, error %v, want the type with the given name", found.Name, err)
		}
	}
	const want = `unknown fault type "pod-chrun"; expected one of api-error, request-reset, request-slow, request-hang, response-slow, response-lost, ` +
		`watch-delay, watch-stall, watch-end, watch-skip, bookmark-loss, stale-list, random-order, pod-churn, pod-relabel, pod-disown, pod-pending, restart, crash, freeze, node-cordon, node-drain, node-taint, node-not-ready, node-stop, node-cut-off, node-delete, api-server-restart, etcd-restart, etcd-compact, clock-skew, name-taken, quota-exhausted, admission-denied, namespace-terminating, user-edit; did you mean pod-churn?`
	if _, err := Find("pod-chrun"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestLibrary checks that New of the fault type accepts every fault in the library's scenarios.
func TestLibrary(t *testing.T) {
	for _, s := range library.All() {
		for _, fault := range s.Faults {
			faultType, err := Find(fault.Name)
			if err == nil {
				_, err = faultType.New(fault.Params)
			}
			if err != nil {
				t.Errorf("creating the faults of scenario %s: %v", s.Name, err)
			}
		}
	}
}
