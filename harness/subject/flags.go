package subject

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Controllers are the four under test, by kube-controller-manager's names.
var Controllers = []string{
	"replicationcontroller-controller",
	"replicaset-controller",
	"deployment-controller",
	"endpoints-controller",
}

const leaseNamespace = "kube-system"

// leaseName is each target's own default, which its roles allow by name.
func (t Target) leaseName() string {
	if t == Ours {
		return "workload-controller-manager"
	}
	return "kube-controller-manager"
}

// flags is the command line of one replica, the same for every target.
func flags(o Options, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(Controllers, ","),
		"--leader-elect=true",
		"--leader-elect-lease-duration=15s",
		"--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s",
		"--leader-elect-resource-lock=leases",
		"--leader-elect-resource-name=" + o.Target.leaseName(),
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

// writeKubeconfig writes a kubeconfig that only this user may read.
func writeKubeconfig(path, url string, ca []byte, token string) error {
	const name = "gauntlet"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, encoded, 0o600)
}
