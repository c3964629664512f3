package subject

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// All replicas use the lease name of kube-controller-manager for leader election,
// because the upstream RBAC roles allow only that name.
const (
	leaseName = "kube-controller-manager"
	// LeaseNamespace is the namespace of the lease, unless the run uses an existing
	// cluster. On the clusters that gauntlet creates, no other component uses this lease:
	// their kube-controller-manager runs without leader election.
	LeaseNamespace = "kube-system"
)

// Settings are the settings of a subject in a scenario.
type Settings struct {
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
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(cluster.SubjectControllers, ","),
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
		fmt.Sprintf("--concurrent-rc-syncs=%d", s.Concurrency),
		fmt.Sprintf("--concurrent-replicaset-syncs=%d", s.Concurrency),
		fmt.Sprintf("--concurrent-deployment-syncs=%d", s.Concurrency),
		fmt.Sprintf("--concurrent-endpoint-syncs=%d", s.Concurrency),
		"-v=2",
	}, serving.flags()...)
}
