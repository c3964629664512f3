package kind

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// dnsName is the name of the Deployment that kubeadm creates for CoreDNS.
	dnsName = "coredns"
	// controlPlaneLabel is the label that kubeadm gives to the control plane node.
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// runDNS creates a DaemonSet that runs CoreDNS on the control plane node.
//
// The DaemonSet replaces kubeadm's Deployment, which [removeDeployments] deletes later. The pods of
// a Deployment would depend on the controllers under test, which may be broken or not running.
func runDNS(ctx context.Context, client kubernetes.Interface) error {
	deployment, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, dnsName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Deployment of CoreDNS: %w", err)
	}
	template := deployment.Spec.Template
	template.Spec.Affinity = nil
	template.Spec.NodeSelector = with(template.Spec.NodeSelector, controlPlaneLabel, "")
	_, err = client.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: dnsName, Labels: deployment.Labels},
		Spec:       appsv1.DaemonSetSpec{Selector: deployment.Spec.Selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating DaemonSet %s/%s: %w", metav1.NamespaceSystem, dnsName, err)
	}
	return nil
}

// dnsReady returns nil if at least one CoreDNS pod is Ready. Otherwise, the error says how many
// pods are Ready.
func dnsReady(ctx context.Context, client kubernetes.Interface) error {
	set, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, dnsName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading DaemonSet %s/%s: %w", metav1.NamespaceSystem, dnsName, err)
	}
	if set.Status.NumberReady < 1 {
		return fmt.Errorf("DaemonSet %s/%s of CoreDNS: found %d of %d pods Ready; expected at least 1", set.Namespace, set.Name, set.Status.NumberReady, set.Status.DesiredNumberScheduled)
	}
	return nil
}
