package providers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{"embedded", "kind", "existing", "virtual"} {
		if p, err := Named(name); err != nil || p.Name != name {
			t.Errorf("Named(%q) = %q, error %v", name, p.Name, err)
		}
	}
	const want = `provider "cloud": expected embedded, kind, existing or virtual`
	if _, err := Named("cloud"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	const wantStanding = `provider "existing": expected embedded or kind`
	if _, err := NamedWith("existing", cluster.StandingClusters); err == nil || err.Error() != wantStanding {
		t.Errorf("error %v, want %s", err, wantStanding)
	}
	if p, err := NamedWith("kind", cluster.StandingClusters, cluster.RealKubelets); err != nil || p.Name != "kind" {
		t.Errorf("NamedWith(kind) = %q, error %v", p.Name, err)
	}
}

// TestWith checks which providers With returns for capabilities such as RunsDetached.
func TestWith(t *testing.T) {
	for _, test := range []struct {
		needed []cluster.Capability
		want   []string
	}{
		{nil, []string{"embedded", "kind", "existing", "virtual"}},
		{[]cluster.Capability{cluster.OwnsControlPlane}, []string{"embedded", "kind", "virtual"}},
		{[]cluster.Capability{cluster.ControlsContainers}, []string{"embedded", "kind", "virtual"}},
		{[]cluster.Capability{cluster.SimulatedKubelets}, []string{"embedded", "virtual"}},
		{[]cluster.Capability{cluster.StopsMachines}, []string{"kind"}},
		{[]cluster.Capability{cluster.OwnsControlPlane, cluster.SubjectAsProcess}, []string{"embedded"}},
		{[]cluster.Capability{cluster.PausesSubject}, []string{"embedded", "kind", "existing"}},
		{[]cluster.Capability{cluster.VirtualTime}, []string{"virtual"}},
	} {
		if got := With(test.needed...); !slices.Equal(got, test.want) {
			t.Errorf("With(%q) = %q, want %q", test.needed, got, test.want)
		}
	}
}

func TestAlternatives(t *testing.T) {
	err := fmt.Errorf("fault 1: %w", cluster.Capabilities{}.Require("action unready", cluster.ControlsContainers))
	if got, want := Alternatives(err), "; expected --provider=embedded, kind or virtual"; got != want {
		t.Errorf("Alternatives(%v) = %q, want %q", err, got, want)
	}
	if got := Alternatives(errors.New("other")); got != "" {
		t.Errorf("Alternatives() of an error that is no MissingError = %q, want \"\"", got)
	}
}

func TestWorkers(t *testing.T) {
	for nodes, want := range map[int]int{1: 0, 2: 2, 5: 5} {
		if got := workers(nodes); got != want {
			t.Errorf("%d nodes: %d workers, want %d", nodes, got, want)
		}
	}
}

// TestPreflightOfExisting verifies that Preflight of the provider existing rejects invalid options.
func TestPreflightOfExisting(t *testing.T) {
	p, err := Named("existing")
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"kubeconfig no-such-file: file does not exist": {Existing: cluster.Existing{Kubeconfig: "no-such-file"}},
		"cannot find out whether the cluster runs cronjob-controller; test only controllers among replicationcontroller-controller,": {
			Controllers: []kube.Controller{{Name: "cronjob-controller"}},
		},
	} {
		if err := p.Preflight(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Preflight(): error %v, want one that contains %q", err, want)
		}
	}
}

// TestCheckFlags checks which flags each provider refuses.
func TestCheckFlags(t *testing.T) {
	for _, test := range []struct{ provider, flag, want string }{
		{Embedded, "kubeconfig", "--kubeconfig has no effect on the provider embedded; remove the flag, or use --provider=existing"},
		{Embedded, "node-image", "--node-image has no effect on the provider embedded; remove the flag, or use --provider=kind"},
		{Kind, "upstream-dir", "--upstream-dir has no effect on the provider kind; remove the flag, or use --provider=embedded or existing"},
		{Existing, "node-image", "--node-image has no effect on the provider existing; remove the flag, or use --provider=kind"},
		{Existing, "context", ""},
		{Embedded, "upstream-dir", ""},
		{Embedded, "seed", ""},
	} {
		p, err := Named(test.provider)
		if err != nil {
			t.Fatal(err)
		}
		err = p.CheckFlags(func(flag string) bool { return flag == test.flag })
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s with --%s: error %v, want %q", test.provider, test.flag, err, test.want)
		}
	}
}
