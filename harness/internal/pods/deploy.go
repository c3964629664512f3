package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deploy starts the replicas of a subject (the program under test) as pods. The pods connect
// directly to the API server, without a relay and a fault proxy. The argument ca is the CA
// certificate of the API server as PEM.
//
// The kubelet restarts a replica that exits. Deploy returns when all replicas have started.
func Deploy(ctx context.Context, o Options, replicas int, ca []byte) error {
	if err := o.prepare(ctx); err != nil {
		return err
	}
	kubeconfig, err := kubeconfigOf(o.Node.APIServer(), ca)
	if err != nil {
		return err
	}
	var names []string
	for i := range replicas {
		name := fmt.Sprintf("subject-%d", i)
		if err := o.writeSecret(ctx, configSecret(name), map[string][]byte{kubeconfigFile: kubeconfig}); err != nil {
			return err
		}
		pod := o.manifest(name, name, corev1.RestartPolicyAlways)
		if _, err := o.Admin.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating pod %s/%s of the subject: %w", Namespace, name, err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if _, err := o.awaitStart(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
