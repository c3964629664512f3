package subject

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// All replicas use the lease name of kube-controller-manager for leader election,
// because the upstream RBAC roles allow only that name.
const (
	leaseName = kube.LeaseName
	// LeaseNamespace is the namespace of the lease, unless the run uses an existing
	// cluster. On the clusters that gauntlet creates, no other component uses this lease:
	// their kube-controller-manager runs without leader election.
	LeaseNamespace = "kube-system"
)

// Settings are the settings of a subject in a scenario.
type Settings struct {
	// Controllers are the controllers under test. If it is empty, these are the default
	// controllers.
	Controllers []kube.Controller
	QPS, Burst  int // client-side rate limit of each controller's client
	Concurrency int // workers per controller
	// LeaseDuration is the lease duration of the leader election. The renew deadline
	// and the retry period are derived from it. The proportions are those of
	// kube-controller-manager's defaults: 15 s, 10 s and 2 s.
	LeaseDuration time.Duration
	// LeaseNamespace is the namespace of the lease; see [LeaseNamespace].
	LeaseNamespace string
}

// Flags returns the command line of one replica. It is the same for every target. If
// serving is nil, the replica opens no port.
func (s Settings) Flags(kubeconfig string, serving *Serving) []string {
	controllers := kube.OrDefault(s.Controllers)
	flags := []string{
		"--kubeconfig=" + kubeconfig,
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
	return append(append(flags, "-v=2"), serving.flags()...)
}
