package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"
)

// equal has options for cmp.Equal that compare scenarios without positions in files. Values of
// type Params have a method Equal, which cmp.Equal calls.
var equal = cmp.Options{cmpopts.IgnoreUnexported(Scenario{}), cmpopts.EquateEmpty()}

// TestParseHeader checks that a file may begin with a byte order mark. The directive %YAML, which
// has the version of YAML, may follow.
func TestParseHeader(t *testing.T) {
	for _, header := range []string{"\ufeff", "%YAML 1.2\n---\n", "\ufeff%YAML 1.1\n---\n"} {
		if _, err := Parse("x.yaml", []byte(header+minimal)); err != nil {
			t.Errorf("header %q: %v", header, err)
		}
	}
}

// TestParseValues checks that the reader accepts values that are valid YAML, though unusual.
func TestParseValues(t *testing.T) {
	for _, test := range []struct {
		text, want string
		read       func(s *Scenario) any
	}{
		{"faults:\nexercises: null\nsubject: {controllers: [replicaset-controller]}\n", "0", func(s *Scenario) any { return len(s.Faults) + len(s.Exercises) }},
		{"faults:\n  - x: {probability: 1e-3}\n", "0.001", probability},
		{"faults:\n  - x: {probability: 2E-1}\n", "0.2", probability},
		{"faults:\n  - x: {probability: '1e-3'}\n", `x.yaml:6:22: x.probability: found "1e-3"; expected a number`, probability},
		{"exercises: [1e3]\n", "1e3", func(s *Scenario) any { return s.Exercises[0] }},
	} {
		s, err := Parse("x.yaml", []byte(minimal+test.text))
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := fmt.Sprint(test.read(s)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.text, got, test.want)
		}
	}
}

// probability returns the parameter probability of the first fault, or the error about it.
func probability(s *Scenario) any {
	var params struct {
		Probability float64 `yaml:"probability"`
	}
	if err := s.Faults[0].Params.Decode(&params); err != nil {
		return err
	}
	return params.Probability
}

func TestParse(t *testing.T) {
	got, err := Parse("x.yaml", []byte(`
name: full
description: >
  Everything that a scenario
  can say.
seed: 18446744073709551615
cluster: {nodes: 2, podStartDelay: 250ms}
subject: {replicas: 2, qps: 20, burst: 30, concurrency: 1, leaseDuration: 4s}
workload:
  - create: {kind: ReplicationController, name: web, replicas: 0, minReadySeconds: 3, labels: {app: web, tier: x}, selector: {app: web}}
  - scale: {kind: ReplicationController, name: web, replicas: 1200}
    after: 200ms
    await: {until: available, within: 5m}
  - create: {kind: Pod, name: orphan, count: 3, labels: {app: web}, controller: foreign}
  - delete: {kind: ReplicationController, name: web, propagation: orphan}
  - await: {kind: ReplicationController, name: web, until: gone, within: 9s}
faults:
  - api-error: {verb: create, code: 500, probability: 0.3}
    from: 1s
    for: 8s
  - pod-churn:
settle: {within: 30s, quiet: 500ms}
exercises: [burst-limit, no-writes-when-settled]
`))
	if err != nil {
		t.Fatal(err)
	}
	params, err := ParseParams("p.yaml", "api-error", []byte("{verb: create, code: 500, probability: 0.3}"))
	if err != nil {
		t.Fatal(err)
	}
	legacy := Target{ReplicationController, "web"}
	want := &Scenario{
		Name:        "full",
		Description: "Everything that a scenario can say.",
		Seed:        18446744073709551615,
		Cluster:     Cluster{Nodes: 2, PodStartDelay: 250 * time.Millisecond},
		Subject:     Subject{Replicas: 2, QPS: 20, Burst: 30, Concurrency: 1, LeaseDuration: 4 * time.Second},
		Workload: []Step{
			{Operation: &Create{Target: legacy, Count: 1, Replicas: ptr.To(0), MinReadySeconds: 3,
				Labels: map[string]string{"app": "web", "tier": "x"}, Selector: map[string]string{"app": "web"}, Controller: NoController}},
			{After: 200 * time.Millisecond, Operation: &Scale{Target: legacy, Replicas: ptr.To(1200)},
				Await: &Await{Target: legacy, Until: Available, Within: 5 * time.Minute}},
			{Operation: &Create{Target: Target{Pod, "orphan"}, Count: 3, Labels: map[string]string{"app": "web"}, Controller: ForeignController}},
			{Operation: &Delete{Target: legacy, Propagation: Orphan}},
			{Await: &Await{Target: legacy, Until: Gone, Within: 9 * time.Second}},
		},
		Faults: []Fault{
			{Name: "api-error", Params: params, From: time.Second, For: 8 * time.Second},
			{Name: "pod-churn"},
		},
		Settle:    Settle{Within: 30 * time.Second, Quiet: 500 * time.Millisecond},
		Exercises: []string{"burst-limit", "no-writes-when-settled"},
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
}

func TestParseDefaults(t *testing.T) {
	got, err := Parse("x.yaml", []byte(minimal+"  - delete: {kind: ReplicaSet, name: web}\nsubject: {replicas: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	app := map[string]string{"app": "web"}
	want := &Scenario{
		Name:        "small",
		Description: "One ReplicaSet.",
		Cluster:     Cluster{Nodes: 4},
		Subject:     Subject{Replicas: 2, QPS: 500, Burst: 1000, Concurrency: 5, LeaseDuration: 15 * time.Second},
		Workload: []Step{
			{Operation: &Create{Target: Target{ReplicaSet, "web"}, Count: 1, Replicas: ptr.To(3), Labels: app, Selector: app, Controller: NoController}},
			{Operation: &Delete{Target: Target{ReplicaSet, "web"}, Propagation: Background}},
		},
		Settle: Settle{Within: time.Minute, Quiet: 2 * time.Second},
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
}

// TestParseKinds checks the defaults of a create step for each kind.
func TestParseKinds(t *testing.T) {
	number := func(n int) *IntOrString { return &IntOrString{number: n} }
	text := func(s string) *IntOrString { return &IntOrString{text: s} }
	app := map[string]string{"app": "x"}
	for _, test := range []struct {
		create string
		want   Create
	}{
		{"kind: Deployment, name: x, replicas: 2", Create{Replicas: ptr.To(2), Labels: app, Selector: app, Strategy: RollingUpdate}},
		{"kind: Deployment, name: x, replicas: 2, version: v1, maxSurge: 25%, maxUnavailable: 0, revisionHistoryLimit: 0, progressDeadlineSeconds: 5, paused: true",
			Create{Replicas: ptr.To(2), Labels: app, Selector: app, Version: "v1", Strategy: RollingUpdate,
				MaxSurge: text("25%"), MaxUnavailable: number(0), RevisionHistoryLimit: ptr.To(0), ProgressDeadlineSeconds: ptr.To(5), Paused: true}},
		{"kind: Deployment, name: x, replicas: 2, strategy: Recreate", Create{Replicas: ptr.To(2), Labels: app, Selector: app, Strategy: Recreate}},
		{"kind: Service, name: x", Create{Ports: []Port{{Name: "http", Port: 80, TargetPort: text("http"), Protocol: TCP}}}},
		{"kind: Service, name: x, selector: {app: x}, publishNotReadyAddresses: true, ports: [{port: 53, protocol: UDP, targetPort: 5353}]",
			Create{Selector: app, PublishNotReadyAddresses: true, Ports: []Port{{Port: 53, TargetPort: number(5353), Protocol: UDP}}}},
		{"kind: Service, name: x, headless: true, ports: []", Create{Headless: true, Ports: []Port{}}},
		{"kind: Service, name: x, externalName: example.com, labels: {app: x}", Create{ExternalName: "example.com", Labels: app}},
		{"kind: Endpoints, name: x, leader: true", Create{Leader: true}},
	} {
		s, err := Parse("x.yaml", []byte(minimal+"  - create: {"+test.create+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", test.create, err)
			continue
		}
		got := s.Workload[1].Operation.(*Create)
		test.want.Target, test.want.Count, test.want.Controller = got.Target, 1, NoController
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("%s: parsed (-want +got):\n%s", test.create, diff)
		}
	}
}

// TestLabelDefaults checks that the default of labels is the selector, and the default of the
// selector is the labels.
func TestLabelDefaults(t *testing.T) {
	type labels = map[string]string
	for _, test := range []struct {
		name, fields             string
		wantLabels, wantSelector labels
	}{
		{"neither", "", labels{"app": "x"}, labels{"app": "x"}},
		{"labels", ", labels: {a: b}", labels{"a": "b"}, labels{"a": "b"}},
		{"selector", ", selector: {a: b}", labels{"a": "b"}, labels{"a": "b"}},
		{"both", ", labels: {a: b, c: d}, selector: {a: b}", labels{"a": "b", "c": "d"}, labels{"a": "b"}},
	} {
		s, err := Parse("x.yaml", []byte(minimal+"  - create: {kind: ReplicaSet, name: x, replicas: 1"+test.fields+"}\n"))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		create := s.Workload[1].Operation.(*Create)
		if diff := cmp.Diff([]labels{test.wantLabels, test.wantSelector}, []labels{create.Labels, create.Selector}); diff != "" {
			t.Errorf("%s: labels and selector (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestStepString(t *testing.T) {
	s, err := Parse("x.yaml", []byte(minimal+`
  - create: {kind: Pod, name: one}
  - create: {kind: Pod, name: orphan, count: 5, controller: foreign}
  - scale: {kind: ReplicaSet, name: web, replicas: 0}
    await: {until: scaled, within: 5s}
  - await: {kind: Pod, name: one, until: ready}
  - delete: {kind: ReplicaSet, name: web, propagation: foreground}
  - create: {kind: Deployment, name: shop, replicas: 4}
  - rollout: {name: shop, version: v2}
  - rollout: {name: shop, version: v3, replicas: 7}
    await: {until: complete}
  - pause: {name: shop}
  - resume: {name: shop}
  - rollback: {name: shop}
  - rollback: {name: shop, revision: 3}
  - label: {kind: Pod, name: orphan, labels: {app: other, b: c}, remove: [tier]}
  - annotate: {kind: Pod, name: orphan, annotations: {controller.kubernetes.io/pod-deletion-cost: "-3", note: two words}, remove: [b]}
  - create: {kind: Service, name: shop}
  - select: {name: shop, selector: {app: shop, tier: x}}
  - select: {name: shop, selector: {}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range s.Workload {
		got = append(got, step.String())
	}
	want := []string{
		"create ReplicaSet web with 3 replicas",
		"create Pod one",
		"create 5 Pods orphan under a foreign controller",
		"scale ReplicaSet web to 0, then await ReplicaSet web scaled within 5s",
		"await Pod one ready within 1m0s",
		"delete ReplicaSet web (foreground)",
		"create Deployment shop with 4 replicas",
		"roll Deployment shop out to version v2",
		"roll Deployment shop out to version v3 and scale it to 7, then await Deployment shop complete within 1m0s",
		"pause Deployment shop",
		"resume Deployment shop",
		"roll Deployment shop back",
		"roll Deployment shop back to revision 3",
		"label Pod orphan app=other b=c tier-",
		"annotate Pod orphan controller.kubernetes.io/pod-deletion-cost=-3 note=two words b-",
		"create Service shop",
		"let Service shop select app=shop,tier=x",
		"let Service shop select nothing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps in words (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"orphan-0", "orphan-1", "orphan-2", "orphan-3", "orphan-4"}, s.Workload[2].Operation.(*Create).Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestMarshal checks the YAML that Marshal writes, which becomes scenario.yaml in a run
// directory.
func TestMarshal(t *testing.T) {
	s, err := Parse("x.yaml", []byte(minimal+`faults:
  - api-error: {verb: create, code: 500, probability: 0.3}
    from: 1s
exercises: [no-writes-when-settled]
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: small
description: One ReplicaSet.
cluster: {nodes: 4, podStartDelay: 0s}
subject: {replicas: 1, qps: 500, burst: 1000, concurrency: 5, leaseDuration: 15s}
workload:
  - create: {kind: ReplicaSet, name: web, count: 1, replicas: 3, labels: {app: web}, selector: {app: web}, controller: none}
faults:
  - api-error: {verb: create, code: 500, probability: 0.3}
    from: 1s
settle: {within: 1m0s, quiet: 2s}
exercises: [no-writes-when-settled]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestMarshalRefuses(t *testing.T) {
	s, err := Parse("x.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	s.Cluster.Nodes = 0
	const want = `writing scenario "small": x.yaml:1:1: cluster.nodes: found 0, or nothing; expected a number from 1 to 50`
	if _, err := s.Marshal(); err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

// FuzzParse checks that no input makes Parse panic. Each line of an error must begin
// with the file name. Marshal must write an accepted scenario, and Parse must read it back.
func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add(minimal + "faults:\n  - api-error: {verb: create, names: [a, {b: 1.5}]}\n    from: 1s\n")
	f.Add(statefulSet)
	f.Add(customResource)
	f.Add("name: |\n  a\n---\n? [x]\n: &a *a\n")
	f.Fuzz(func(t *testing.T, input string) {
		s, err := Parse("x.yaml", []byte(input))
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "x.yaml:") {
					t.Errorf("line %q of the error does not name the file", line)
				}
			}
			return
		}
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.yaml", data)
		if err != nil {
			t.Fatalf("what Marshal wrote is refused: %v\n%s", err, data)
		}
		if diff := cmp.Diff(s, again, equal); diff != "" {
			t.Errorf("read again (-first +second):\n%s\n%s", diff, data)
		}
	})
}
