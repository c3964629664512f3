package e2eframework

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestCheckCluster tests on which clusters checkCluster accepts a scenario. The clusters have the
// option WithScenario and one change.
func TestCheckCluster(t *testing.T) {
	const pods = "cluster: {nodes: 2, podStartDelay: 50ms}\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\n"
	const external = "externalWorkload: {}\noperator: {controllers: [{name: copier, kind: ConfigMap}]}\n"
	for _, test := range []struct {
		name, scenario string
		capabilities   cluster.Capabilities
		change         func(*providers.Options)
		want           string // text in the error; empty means no error
	}{
		{"as asked", pods, capabilitiesOf(t, providers.Embedded), func(*providers.Options) {}, ""},
		{"more nodes", pods, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Nodes = 3 }, ""},
		{"fewer nodes", pods, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Nodes = 1 }, "the cluster has 1 nodes; expected at least 2"},
		{"fewer nodes of an existing cluster", pods, capabilitiesOf(t, providers.Existing), func(o *providers.Options) { o.Nodes = 0 }, ""},
		{"slower pods", pods, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.PodStartDelay = time.Second },
			"the cluster has the pod start delay 1s and the pod stop delay 0s; expected 50ms and 0s"},
		{"slower pods of real kubelets", pods, capabilitiesOf(t, providers.Kind), func(o *providers.Options) { o.PodStartDelay = time.Second }, ""},
		{"default controllers", pods, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Controllers = nil }, ""},
		{"cluster runs the controllers", pods, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Controllers = []kube.Controller{} },
			`controllers that the cluster does not run: found []; expected the controllers under test, ["deployment-controller"`},
		{"controllers of the suite", external, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Nodes = 1 }, ""},
		{"no controllers of Kubernetes", external, capabilitiesOf(t, providers.Embedded), func(o *providers.Options) { o.Controllers = nil },
			`; expected the controllers under test, []`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := scenario.Parse("scenario.yaml", []byte("name: x\ndescription: x\n"+test.scenario))
			if err != nil {
				t.Fatal(err)
			}
			var o providers.Options
			forScenario(s, &o)
			test.change(&o)
			if err := checkCluster(s, o, test.capabilities); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func capabilitiesOf(t *testing.T, provider string) cluster.Capabilities {
	t.Helper()
	p, err := providers.Named(provider)
	if err != nil {
		t.Fatal(err)
	}
	return p.Capabilities
}
