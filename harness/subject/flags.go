package subject

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// The lease that replicas elect their leader by. It is kube-controller-manager's
// own, which upstream's roles allow by name; the control plane's support does not
// elect, so that nobody else wants it.
const (
	leaseNamespace = "kube-system"
	leaseName      = "kube-controller-manager"
)

// flags is the command line of one replica, the same for every target.
func flags(o Options, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(cluster.SubjectControllers, ","),
		"--leader-elect=true",
		"--leader-elect-lease-duration=15s",
		"--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s",
		"--leader-elect-resource-lock=leases",
		"--leader-elect-resource-name=" + leaseName,
		"--leader-elect-resource-namespace=" + leaseNamespace,
		fmt.Sprintf("--kube-api-qps=%d", o.QPS),
		fmt.Sprintf("--kube-api-burst=%d", o.Burst),
		"--kube-api-content-type=application/vnd.kubernetes.protobuf",
		fmt.Sprintf("--concurrent-rc-syncs=%d", o.Concurrency),
		fmt.Sprintf("--concurrent-replicaset-syncs=%d", o.Concurrency),
		fmt.Sprintf("--concurrent-deployment-syncs=%d", o.Concurrency),
		fmt.Sprintf("--concurrent-endpoint-syncs=%d", o.Concurrency),
		// Nothing asks a subject for its health or metrics yet, and a port that is
		// not opened cannot be taken by somebody else.
		"--secure-port=0",
		"-v=2",
	}
}
