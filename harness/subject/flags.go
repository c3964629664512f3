package subject

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// The lease that replicas elect their leader by. Its name is that of
// kube-controller-manager's own, which upstream's roles allow.
const (
	leaseName = "kube-controller-manager"
	// LeaseNamespace is where it is on a cluster that is the run's alone: there the
	// control plane's support does not elect, so that nobody else wants it.
	LeaseNamespace = "kube-system"
)

// Settings are those that a scenario has of its subject.
type Settings struct {
	QPS, Burst  int // client-side rate limit of each controller's client
	Concurrency int // workers per controller
	// LeaseDuration is how long a silent leader is waited for. The other times of
	// an election follow from it in the proportions of kube-controller-manager's
	// defaults, 15 s, 10 s and 2 s.
	LeaseDuration time.Duration
	// LeaseNamespace is where they elect; see [LeaseNamespace].
	LeaseNamespace string
}

// Flags is the command line of one replica, the same for every target. Without a
// serving it serves nothing, and opens no port that somebody else could have taken.
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
