package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

func TestLibraryIsValid(t *testing.T) {
	for _, s := range library.All() {
		if err := Validate(s); err != nil {
			t.Error(err)
		}
	}
}

func TestValidate(t *testing.T) {
	const base = "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
	for _, test := range []struct{ name, add, want string }{
		{"unknown fault", "faults:\n  - api-eror: {verb: create}\n",
			`test.yaml:6:5: api-eror: unknown fault type "api-eror"; expected one of api-error, `},
		{"unknown resource", "faults:\n  - api-error: {verb: create, resource: podz, code: 500}\n",
			`test.yaml:6:41: api-error.resource: unknown value "podz"; expected one of configmaps`},
		{"unknown check", "exercises: [no-writes-when-settled, speed]\n",
			`test.yaml:5:37: exercises[1]: unknown check "speed"; expected one of ownership,`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Validate(parse(t, base+test.add))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestRunDirectories(t *testing.T) {
	out := t.TempDir()
	target, err := subject.ParseTarget("exec:" + os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Scenario: &scenario.Scenario{Name: "burst", Seed: 5},
		Target:   target,
		Clock:    clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	for _, want := range []string{
		"20260102T030405-burst-exec-run.test-seed5",
		"20260102T030405-burst-exec-run.test-seed5-2", // the name of a second run in the same second
	} {
		dir, err := outputfile.CreateDirectory(out, runName(&o))
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(dir); got != want {
			t.Errorf("run directory %s, want %s", got, want)
		}
	}
}

func TestCheckRejectsOtherDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:               "found a file; expected a run directory",
		file + "-missing":  ": no such file or directory; expected a run directory",
		filepath.Dir(file): "; expected a run directory",
	} {
		if _, err := Check(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// TestWithin requires that stalls extend the time limit of monitor.within. In a stall, gauntlet or
// a replica of the controllers under test gets no CPU time.
func TestWithin(t *testing.T) {
	stall := func(process string, seconds time.Duration) *history.Record {
		return &history.Record{Stall: &history.Stall{Process: process, Duration: seconds * time.Second}}
	}
	for _, test := range []struct {
		name          string
		before, after []*history.Record // the records before and after the call of within
		want          time.Duration
	}{
		{name: "no stall", want: 10 * time.Second},
		{name: "earlier stalls", before: []*history.Record{stall("", 3), stall("subject-0", 2)}, want: 10 * time.Second},
		{name: "stalls of gauntlet", after: []*history.Record{stall("", 3), stall("", 1)}, want: 14 * time.Second},
		{name: "stalls of gauntlet and of two replicas", after: []*history.Record{stall("", 3), stall("subject-0", 2), stall("subject-1", 1)}, want: 15 * time.Second},
		{name: "long stalls", after: []*history.Record{stall("", 100)}, want: 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMonitor()
				for _, r := range test.before {
					m.observe(r)
				}
				start := time.Now()
				ctx, cancel := m.within(t.Context(), 10*time.Second)
				defer cancel()
				for _, r := range test.after {
					m.observe(r)
				}
				<-ctx.Done()
				if got := time.Since(start); got != test.want {
					t.Errorf("the limit was %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestMonitorQuiet(t *testing.T) {
	write := &history.Record{Request: &history.Request{Verb: "create", Resource: "pods"}}
	lease := &history.Record{Request: &history.Request{Verb: "update", Resource: "leases.coordination.k8s.io"}}
	for _, test := range []struct {
		name   string
		record *history.Record
		want   bool
	}{
		{"a write", write, false},
		{"a write to a lease", lease, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMonitor()
			quiet := make(chan bool)
			started := make(chan struct{})
			go func() {
				close(started)
				quiet <- m.waitQuiet(t.Context(), clock.RealClock{}, 300*time.Millisecond)
			}()
			<-started
			ticker := time.NewTicker(20 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case got := <-quiet:
					if got != test.want {
						t.Errorf("quiet %v, want %v", got, test.want)
					}
					return
				case <-ticker.C:
					m.observe(test.record)
				}
			}
		})
	}
}

// TestMonitorInFlight checks that a run is not settled while a write of a running replica has no
// response.
func TestMonitorInFlight(t *testing.T) {
	for name, answer := range map[string]history.Record{
		"a response":             {Response: &history.Response{ID: 7, Code: 200}},
		"a failed request":       {Response: &history.Response{ID: 7}},
		"the end of the process": {Process: &history.Process{Name: "subject-0", Event: history.ProcessDied}},
		"the start of a new one": {Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMonitor()
				m.observe(&history.Record{Request: &history.Request{ID: 7, Subject: "subject-0", Verb: "create", Resource: "pods"}})
				start := time.Now()
				time.AfterFunc(time.Second, func() {
					m.observe(&history.Record{Response: &history.Response{ID: 8, Code: 200}})
					m.observe(&history.Record{Process: &history.Process{Name: "subject-1", Event: history.ProcessDied}})
					m.observe(&history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessPaused}})
				})
				time.AfterFunc(2*time.Second, func() { m.observe(&answer) })
				if settled, took := m.waitSettled(t.Context()), time.Since(start); !settled || took < 2*time.Second || took > 3*time.Second {
					t.Errorf("settled %v after %s; want true after 2 s", settled, took)
				}
			})
		})
	}
}

// TestMonitorStill checks what interrupts the time in which the subject must be still. This is a write, a
// closed watch, or a message that a fault holds.
func TestMonitorStill(t *testing.T) {
	for name, disturb := range map[string]func(m *monitor, busy, watching *atomic.Bool){
		"a write": func(m *monitor, _, _ *atomic.Bool) {
			m.observe(&history.Record{Request: &history.Request{Verb: "create", Resource: "pods"}})
		},
		"a held message": func(_ *monitor, busy, _ *atomic.Bool) { busy.Store(true) },
		"a closed watch": func(_ *monitor, _, watching *atomic.Bool) { watching.Store(false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var busy, watching atomic.Bool
				watching.Store(true)
				m := newMonitor()
				m.watching = watching.Load
				start := time.Now()
				time.AfterFunc(time.Second, func() { disturb(m, &busy, &watching) })
				time.AfterFunc(1500*time.Millisecond, func() { busy.Store(false); watching.Store(true) })
				m.waitStill(t.Context(), clock.RealClock{}, 2*time.Second, busy.Load)
				if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
					t.Errorf("the subject was still after %s; want 2 s after the disturbance", took)
				}
			})
		})
	}
}

// TestMustFire requires that the verdict of a run is unknown if a fault with mustFire never fires.
func TestMustFire(t *testing.T) {
	spec := parse(t, `name: x
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
faults:
  - api-error: {verb: create, code: 500}
  - watch-end: {}
    mustFire: true
`)
	held := []check.Result{{Check: "ownership", Verdict: check.Pass}}
	for _, test := range []struct {
		name        string
		first, last int // how often the first and the last fault fired
		want        check.Verdict
		reason      string
	}{
		{"both fired", 1, 1, check.Pass, "1 checks passed, 0 not exercised"},
		{"the other never fired", 0, 1, check.Pass, "1 checks passed, 0 not exercised"},
		{"it never fired", 1, 0, check.Unknown, "fault 1 (watch-end) has mustFire, but had no effect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			activity := check.Activity{Writes: 1, Fired: test.first + test.last, Faults: map[int]check.FaultCount{0: {Name: "api-error", Fired: test.first}, 1: {Name: "watch-end", Fired: test.last}}}
			activity.Failures = missedFirings(countFaults(spec, activity))
			if got, reason := check.Overall(held, activity); got != test.want || reason != test.reason {
				t.Errorf("got %s (%s), want %s (%s)", got, reason, test.want, test.reason)
			}
		})
	}
}

func TestFaultRandomIsIndependent(t *testing.T) {
	draw := func(index int, faults ...string) uint64 {
		spec := &scenario.Scenario{Seed: 3}
		for _, name := range faults {
			spec.Faults = append(spec.Faults, scenario.Fault{Name: name})
		}
		return (&Session{Options: &Options{Scenario: spec}}).faultRandom(index).Uint64()
	}
	if draw(0, "a", "b") != draw(0, "a") {
		t.Error("a later fault changes the random values of a fault")
	}
	if draw(0, "a", "a") == draw(1, "a", "a") {
		t.Error("two faults of one kind draw the same values")
	}
}

// TestSupported verifies that Supported rejects a fault that the provider does not support. The
// error must contain the position in the scenario.
func TestSupported(t *testing.T) {
	with := func(fault string) *scenario.Scenario {
		return parse(t, "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\nfaults:\n  - "+fault+"\n")
	}
	for _, test := range []struct{ fault, provider, want string }{
		{"api-error: {verb: create, resource: pods, code: 500}", "embedded", ""},
		{"node-cut-off: {}", "embedded", "test.yaml:6:5: node-cut-off: not supported by provider embedded; expected --provider=kind"},
		{"etcd-restart: {}", "existing", "test.yaml:6:5: etcd-restart: not supported by provider existing; expected --provider=embedded, kind or virtual"},
		{"etcd-restart: {}", "cloud", `provider "cloud": expected embedded, kind, existing or virtual`},
	} {
		err := Supported(with(test.fault), test.provider)
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s on %s: error %v\nwant %s", test.fault, test.provider, err, test.want)
		}
	}
}

// TestSupportedByPodCapacity verifies that Supported rejects a scenario with too many pods for its
// nodes.
func TestSupportedByPodCapacity(t *testing.T) {
	spec, err := scenario.Parse("x.yaml", []byte(`name: x
description: y
cluster: {nodes: 2}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 181}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Supported(spec, "embedded"); err != nil {
		t.Error(err)
	}
	want := "x.yaml:3:18: cluster.nodes: the workload needs 181 pods at the same time, but 2 nodes of provider kind can run only 180; add nodes or remove pods"
	if err := Supported(spec, "kind"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestSupportedByKind verifies that Supported rejects a kind that the API servers of the provider do
// not serve.
func TestSupportedByKind(t *testing.T) {
	for _, test := range []struct{ apiVersion, kind, provider, want string }{
		{"example.com/v1", "Widget", "embedded", ""},
		{"example.com/v1", "Widget", "virtual", "test.yaml:4:20: workload[0].create.kind: found Widget of example.com/v1; expected a kind that provider virtual serves, or another provider, such as --provider=embedded"},
		{"apps/v1", "StatefulSet", "virtual", "test.yaml:4:20: workload[0].create.kind: found StatefulSet of apps/v1; expected"},
		{"v1", "ConfigMap", "virtual", ""},
	} {
		s := parse(t, "name: x\ndescription: x\nworkload:\n  - create: {kind: "+test.kind+", apiVersion: "+test.apiVersion+", name: web, manifest: {metadata: {labels: {a: b}}}}\n")
		err := Supported(s, test.provider)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s on %s: error %v\nwant %s", test.kind, test.provider, err, test.want)
		}
	}
}

func TestSupportedByParameters(t *testing.T) {
	churn := func(action string) *scenario.Scenario {
		return parse(t, "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\nfaults:\n  - pod-churn: {action: "+action+"}\n")
	}
	for _, action := range []string{"delete", "fail"} {
		for _, provider := range providers.Names() {
			if err := Supported(churn(action), provider); err != nil {
				t.Errorf("%s on %s: %v", action, provider, err)
			}
		}
	}
	for _, provider := range []string{"embedded", "kind"} {
		if err := Supported(churn("unready"), provider); err != nil {
			t.Error(err)
		}
	}
	for action, want := range map[string]string{
		"unready":  "test.yaml:6:5: pod-churn: not supported by provider existing: action unready requires a provider with \"containers that faults control\"; expected --provider=embedded, kind or virtual",
		"collapse": "test.yaml:6:5: pod-churn: not supported by provider existing: action collapse requires a provider with \"simulated kubelets\"; expected --provider=embedded or virtual",
		"succeed":  "test.yaml:6:5: pod-churn: not supported by provider existing: action succeed requires a provider with \"simulated kubelets\"; expected --provider=embedded or virtual",
	} {
		if err := Supported(churn(action), "existing"); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant %s", err, want)
		}
	}
}

func TestPreflightOnKind(t *testing.T) {
	spec := parse(t, "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n")
	image, err := subject.ParseTarget("image:example.com/manager:v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		options Options
		want    string // part of the expected error; "" means no error
	}{
		{Options{Target: subject.Upstream}, ""},
		{Options{Target: image}, ""},
		{Options{Target: subject.Ours, Ours: filepath.Join(t.TempDir(), "none")}, "make build"},
		{Options{Target: subject.Upstream, Direct: true}, "reach the API server only through the fault proxy"},
	} {
		o := test.options
		o.Scenario, o.Provider = spec, "kind"
		if err := o.Preflight(); (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", o.Target, err, test.want)
		}
	}
}

// TestCheckWorkload verifies that a run needs exactly one workload: steps in the scenario or a
// function.
func TestCheckWorkload(t *testing.T) {
	steps := parse(t, "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n")
	external := parse(t, "name: x\ndescription: x\nexternalWorkload: {}\n")
	program := func(context.Context, *Session) error { return nil }
	for _, test := range []struct {
		scenario *scenario.Scenario
		workload Workload
		want     string // empty: no error
	}{
		{steps, nil, ""},
		{external, program, ""},
		{external, nil, "test.yaml:3:19: externalWorkload: found a workload that a Go program executes; expected steps in the field workload, or a run that a Go program starts with a workload of its own"},
		{steps, program, "test.yaml:4:3: workload: found Options.Workload besides the steps; expected externalWorkload instead of the steps"},
	} {
		o := Options{Scenario: test.scenario, Workload: test.workload}
		if err := o.checkWorkload(); (err != nil) != (test.want != "") || err != nil && err.Error() != test.want {
			t.Errorf("error %v\nwant %s", err, test.want)
		}
	}
}

func TestReproduceCommand(t *testing.T) {
	for _, test := range []struct {
		dir         directory
		environment Environment
		want        string
	}{
		{
			"out/burst", Environment{Command: []string{"bin/gauntlet", "run"}, Subject: "ours", Provider: "embedded", Seed: 7},
			"bin/gauntlet run out/burst/scenario.yaml --subject=ours --provider=embedded --seed=7",
		},
		{
			"out/my run", Environment{Command: []string{"gauntlet"}, Subject: "exec:./kcm", Provider: "embedded", Seed: 7, UpstreamDir: "/bin"},
			"gauntlet run 'out/my run/scenario.yaml' --subject=exec:./kcm --provider=embedded --seed=7 --upstream-dir=/bin",
		},
		{
			"out/{a,b}\nü~", Environment{Command: []string{"gauntlet"}, Subject: "exec:", Provider: "virtual", Seed: 7, Context: "~#a^!"},
			"gauntlet run 'out/{a,b}\nü~/scenario.yaml' --subject=exec: --provider=virtual --seed=7 '--context=~#a^!'",
		},
		{
			"out/burst", Environment{Command: []string{"/tmp/chaos.test"}, Subject: "ours", Provider: "kind", Seed: 7, NodeImage: "kindest/node:v1.36.3"},
			"bin/gauntlet run out/burst/scenario.yaml --subject=ours --provider=kind --seed=7 --node-image=kindest/node:v1.36.3",
		},
	} {
		if got := reproduceCommand(test.dir, &scenario.Scenario{}, &test.environment); got != test.want {
			t.Errorf("\n got %s\nwant %s", got, test.want)
		}
	}
}

// TestJoinOnce checks that the tear-down of a run does not repeat the reason why the run was aborted.
func TestJoinOnce(t *testing.T) {
	full, other := errors.New("writing the history: no space left"), errors.New("stopping etcd")
	for _, test := range []struct {
		run, tearDown error
		want          string
	}{
		{full, full, full.Error()},
		{full, other, full.Error() + "\n" + other.Error()},
		{nil, other, other.Error()},
		{full, nil, full.Error()},
	} {
		if got := joinOnce(test.run, test.tearDown); got == nil || got.Error() != test.want {
			t.Errorf("%v, %v: error %v; want %q", test.run, test.tearDown, got, test.want)
		}
	}
}

// TestMissingHistory checks the error of a run whose directory or history somebody has removed.
func TestMissingHistory(t *testing.T) {
	aborted := errors.New("the API server has exited")
	for _, test := range []struct {
		name   string
		runErr error
		keep   bool   // the run directory has the file scenario.yaml
		want   string // text of the error; DIR stands for the run directory
	}{
		{"no directory", nil, false, "DIR: found no scenario.yaml; the run directory was removed during the run"},
		{"no directory, aborted", aborted, false, "DIR: found no scenario.yaml; the run directory was removed during the run\nthe API server has exited"},
		{"no history", nil, true, "DIR/history.jsonl: the file was removed during the run\n(the logs are in DIR/logs)"},
		{"no history, aborted", aborted, true, "the API server has exited\n(the logs are in DIR/logs)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Session{Options: &Options{}, dir: directory(t.TempDir())}
			if test.keep {
				if err := os.WriteFile(s.dir.scenario(), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			result, err := s.checkHistory(nil, test.runErr)
			if want := strings.ReplaceAll(test.want, "DIR", string(s.dir)); result != nil || err == nil || err.Error() != want {
				t.Errorf("result %v, error %q; want none and %q", result, err, want)
			}
		})
	}
}
