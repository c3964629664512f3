package combination

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// parse returns a scenario. The parameters are parts of the scenario's YAML: the cluster, the
// workload steps and the faults.
func parse(t *testing.T, cluster, steps, faults string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(fmt.Sprintf("name: x\ndescription: x\ncluster: {%s}\nworkload:\n%s\nfaults:\n%s\n", cluster, steps, faults)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOf(t *testing.T) {
	const (
		web     = "  - create: {kind: Deployment, name: web, replicas: 2, version: v1}\n"
		rollout = web + "  - rollout: {name: web, version: v2}\n"
		pause   = "  - pause: {name: web}\n"
		lag     = "  - watch-delay: {resource: pods, delay: 1s}\n    for: 4s\n"
	)
	of := func(object string, pods Pods, change Change, watch Watch) []Combination {
		return []Combination{{object, pods, change, watch}}
	}
	for _, test := range []struct {
		name                   string
		cluster, steps, faults string
		want                   []Combination
	}{
		{"pause in mid-rollout", "", rollout + pause, lag, of("RollingUpdate", Prompt, PausedInRollout, PodsLag)},
		{"no rollout", "", web + pause, lag, nil},
		{"no lag", "", rollout + pause, "  - crash: {}\n    for: 1s\n", of("RollingUpdate", Prompt, PausedInRollout, Relist)},
		{"the rollout is complete", "", rollout + "    await: {until: complete}\n" + pause, lag, nil},
		{"strategy", "", strings.Replace(rollout, "version: v1", "version: v1, strategy: Recreate", 1) + "  - rollback: {name: web}\n", lag,
			of("Recreate", Prompt, RolledBackInRollout, PodsLag)},
		{"slow to start", "podStartDelay: 1s", rollout + pause, lag, of("RollingUpdate", SlowStart, PausedInRollout, PodsLag)},
		{"not slow enough", "podStartDelay: 100ms", rollout + pause, lag, of("RollingUpdate", Prompt, PausedInRollout, PodsLag)},
		{"slow to end", "podStopDelay: 1s", rollout + pause, lag, of("RollingUpdate", SlowEnd, PausedInRollout, PodsLag)},
		{"pending", "", rollout + pause, lag + "  - pod-pending: {prefix: web-}\n    for: 2s\n", of("RollingUpdate", NeverUp, PausedInRollout, PodsLag)},
		{"other pods are pending", "", rollout + pause, lag + "  - pod-pending: {prefix: shop-}\n    for: 2s\n", of("RollingUpdate", Prompt, PausedInRollout, PodsLag)},
		{"unready until the end", "", rollout + pause, lag + "  - pod-churn: {action: unready, downtime: 1h}\n    for: 2s\n", of("RollingUpdate", NeverUp, PausedInRollout, PodsLag)},
		{"unready for a time", "", rollout + pause, lag + "  - pod-churn: {action: unready, selector: app=web}\n    for: 2s\n", of("RollingUpdate", LateUp, PausedInRollout, PodsLag)},
		{"other pods are unready", "", rollout + pause, lag + "  - pod-churn: {action: unready, selector: app=shop}\n    for: 2s\n", of("RollingUpdate", Prompt, PausedInRollout, PodsLag)},
		{"finalizers", "", rollout + pause, lag + "  - pod-churn: {action: linger}\n    for: 2s\n", of("RollingUpdate", SlowEnd, PausedInRollout, PodsLag)},
		{"Deployments lag", "", rollout + "  - scale: {kind: Deployment, name: web, replicas: 3}\n", "  - watch-stall: {resource: deployments.apps}\n    for: 1s\n",
			of("RollingUpdate", Prompt, ScaledInRollout, DeploymentsLag)},
		{"relist", "", rollout + pause, "  - watch-end: {resource: pods, how: expired}\n    for: 1s\n", of("RollingUpdate", Prompt, PausedInRollout, Relist)},
		{"watch again without a list", "", rollout + pause, "  - watch-end: {resource: pods, how: closed}\n    for: 1s\n", nil},
		{"Service", "", "  - create: {kind: Service, name: web, selector: {app: web}}\n" + rollout + pause, "  - watch-delay: {resource: services, delay: 1s}\n    for: 1s\n",
			of(Service, Prompt, PausedInRollout, ServicesLag)},
		{"Service of other pods", "", "  - create: {kind: Service, name: web, selector: {app: shop}}\n" + rollout + pause, "  - watch-delay: {resource: services, delay: 1s}\n    for: 1s\n", nil},
		{"new selector", "", "  - create: {kind: Service, name: web, selector: {app: web}}\n  - select: {name: web, selector: {app: shop}}\n", "  - watch-delay: {resource: endpoints, delay: 1s}\n    for: 1s\n",
			of(Service, Prompt, Reselect, EndpointsLag)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Of(parse(t, test.cluster, test.steps, test.faults))
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLibraryHasAll checks that every combination occurs in at least one scenario of the
// library.
func TestLibraryHasAll(t *testing.T) {
	var table Table
	for _, s := range library.All() {
		table.Add(s)
	}
	for _, c := range table.Missing() {
		t.Errorf("no scenario of the library has: %s, pods %s, %s, %s", c.Object, c.Pods, c.Change, c.Watch)
	}
}

func TestWriteText(t *testing.T) {
	var table Table
	s := parse(t, "", "  - create: {kind: Deployment, name: web, replicas: 2, version: v1}\n  - rollout: {name: web, version: v2}\n  - pause: {name: web}\n",
		"  - watch-delay: {resource: pods, delay: 1s}\n    for: 4s\n")
	table.Add(s)
	table.Add(s)
	var b strings.Builder
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"STRATEGY PODS CHANGE PODS LAG REPLICASETS LAG DEPLOYMENTS LAG RELIST RollingUpdate prompt pause in mid-rollout 2 . . . RollingUpdate",
		"OBJECT PODS CHANGE PODS LAG SERVICES LAG ENDPOINTS LAG RELIST Service prompt pause in mid-rollout . . . .",
		"scenarios: 2, combinations: 1 of 200",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("expected %q in\n%s", want, b.String())
		}
	}
}
