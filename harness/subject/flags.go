package subject

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// These are the name and the default namespace of the Lease with which the tested program's
// replicas elect a leader.
const (
	// leaseName is the name that kube-controller-manager uses for its Lease. The upstream RBAC
	// roles allow only this name.
	leaseName = kube.LeaseName
	// LeaseNamespace is the namespace of the Lease on clusters that gauntlet creates. No other
	// component uses this Lease: the kube-controller-manager of such a cluster runs without leader
	// election. On an existing cluster, the Lease is in the namespace of the test run.
	LeaseNamespace = "kube-system"
)

// Settings determine the command line flags of the tested program's replicas. All replicas have
// the same settings, which a scenario can change.
type Settings struct {
	// Controllers lists the controllers that the replicas run. Nil means
	// [kube.DefaultControllers].
	Controllers []kube.Controller
	// QPS and Burst are the client-side rate limit (requests per second, and burst) of each
	// controller's client.
	QPS, Burst  int
	Concurrency int // number of workers per controller
	// LeaseDuration is the value of --leader-elect-lease-duration. The renew deadline is 2/3 of
	// LeaseDuration, and the retry period is 2/15 of LeaseDuration. The defaults of
	// kube-controller-manager have the same ratios: 15 s, 10 s and 2 s.
	LeaseDuration time.Duration
	// LeaseNamespace is the namespace of the leader-election Lease.
	LeaseNamespace string
}

// Flags returns the command line arguments of one replica, which are flags of
// kube-controller-manager. Every program under test that runs as a process of its own gets these
// flags, except targets from [Command] and [Operator].
//
// The argument kubeconfig is the path of the replica's kubeconfig. If serving is nil, the replica
// has no debug endpoint and opens no port.
func (s Settings) Flags(kubeconfig string, serving *Serving) []string {
	flags := append([]string{"--kubeconfig=" + kubeconfig}, s.controllerFlags()...)
	return append(append(flags, "-v=2"), serving.flags()...)
}

// controllerFlags returns those flags of kube-controller-manager that do not depend on where the
// replica runs. They choose the controllers, and configure leader election and client limits.
func (s Settings) controllerFlags() []string {
	controllers := kube.OrDefault(s.Controllers)
	flags := []string{
		"--controllers=" + strings.Join(kube.NamesOf(controllers), ","),
		"--leader-elect=true",
		"--leader-elect-lease-duration=" + s.LeaseDuration.String(),
		"--leader-elect-renew-deadline=" + (s.LeaseDuration * 2 / 3).String(),
		"--leader-elect-retry-period=" + (s.LeaseDuration * 2 / 15).String(),
		"--leader-elect-resource-lock=leases",
		"--leader-elect-resource-name=" + leaseName,
		"--leader-elect-resource-namespace=" + s.LeaseNamespace,
		fmt.Sprintf("--kube-api-qps=%d", s.QPS),
		fmt.Sprintf("--kube-api-burst=%d", s.Burst),
		"--kube-api-content-type=application/vnd.kubernetes.protobuf",
	}
	for _, c := range controllers {
		if c.ConcurrencyFlag != "" {
			flags = append(flags, fmt.Sprintf("%s=%d", c.ConcurrencyFlag, s.Concurrency))
		}
	}
	return flags
}
