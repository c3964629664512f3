package catalog

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

var _ faults.Params = scenario.Params{} // what a scenario gives is what faults take

// recordingParams is Params that only finds out which fields a kind reads.
type recordingParams struct{ fields *[]string }

var errRecorded = errors.New("asked")

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

// TestDocumented: every kind can be read about, and documents the parameters
// that it reads, no others.
func TestDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range All {
		if seen[kind.Name] {
			t.Errorf("%s stands twice in the catalogue", kind.Name)
		}
		seen[kind.Name] = true
		if !strings.HasSuffix(kind.Description, ".") || !strings.HasSuffix(kind.Healing, ".") || len(kind.Providers) == 0 {
			t.Errorf("%s: expected a sentence, how it heals, and providers", kind.Name)
		}
		if (kind.Sample == nil) != (kind.NotGeneratedReason != "") {
			t.Errorf("%s: expected it either to draw parameters for scenarios that are generated, or to say why not", kind.Name)
		}
		var documented, read []string
		for _, param := range kind.Params {
			documented = append(documented, param.Name)
			if !strings.HasSuffix(param.Description, ".") || param.Bounds == "" {
				t.Errorf("%s.%s: expected a sentence and bounds", kind.Name, param.Name)
			}
		}
		if _, err := kind.New(recordingParams{&read}); !errors.Is(err, errRecorded) {
			t.Errorf("%s: error %v", kind.Name, err)
		}
		if diff := cmp.Diff(documented, read); diff != "" {
			t.Errorf("%s: parameters (-documented +read):\n%s", kind.Name, diff)
		}
	}
}

func TestFind(t *testing.T) {
	for _, kind := range All {
		if found, err := Find(kind.Name); err != nil || found.Name != kind.Name {
			t.Errorf("found %q, error %v", found.Name, err)
		}
	}
	const want = `unknown kind of fault "pod-chrun"; expected one of api-error, request-reset, request-slow, request-hang, response-lost, ` +
		`watch-delay, watch-stall, watch-end, bookmark-loss, stale-list, pod-churn, pod-relabel, pod-disown, pod-pending, restart, crash, freeze, node-cordon, node-drain, node-taint, node-not-ready, node-stop, node-cut-off, node-delete, api-server-restart, etcd-restart, etcd-compact, clock-skew, name-taken, quota-exhausted, admission-denied, namespace-terminating, user-edit`
	if _, err := Find("pod-chrun"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestLibrary makes every fault of the scenarios that come with gauntlet.
func TestLibrary(t *testing.T) {
	for _, s := range library.All() {
		for _, fault := range s.Faults {
			kind, err := Find(fault.Name)
			if err == nil {
				_, err = kind.New(fault.Params)
			}
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}
