package embedded

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// storageClass is the name of the default StorageClass in a cluster with simulated volumes.
const storageClass = "gauntlet-simulated"

// volumeControllers lists the controllers of kube-controller-manager that work only on volumes and
// their claims. A cluster with simulated volumes (Options.Volumes) runs them. A cluster without
// volumes does not need them, so [unneededControllers] lists them too.
var volumeControllers = []string{
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
}

// provisioner simulates the provisioner of the default StorageClass. It creates a PersistentVolume
// for each PersistentVolumeClaim. After a claim is deleted, the provisioner deletes the claim's
// volume.
//
// A volume is only an API object, because simulated nodes mount nothing.
type provisioner struct {
	client kubernetes.Interface
}

// startProvisioner creates the default StorageClass and starts its provisioner. The provisioner
// runs until the caller calls the returned function stop.
func (c *Cluster) startProvisioner(ctx context.Context, _ Options) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
	}
	class := &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:          storageClass + "/" + storageClass,
		ReclaimPolicy:        ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    ptr.To(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: ptr.To(true), // otherwise, the API server refuses an update that makes a claim larger
	}
	if _, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating StorageClass %s: %w", storageClass, err)
	}
	p := &provisioner{client}
	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().PersistentVolumes().Informer()
	return startReconciler(ctx, factory, p.reconcile, claims, volumes)
}

// reconcile processes a PersistentVolumeClaim or a PersistentVolume.
func (p *provisioner) reconcile(ctx context.Context, object any) (again time.Duration, err error) {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		err = p.provision(ctx, o)
	case *corev1.PersistentVolume:
		err = p.reclaim(ctx, o)
	}
	return 0, err
}

// provision creates a PersistentVolume for a PersistentVolumeClaim that has none. The volume's
// claimRef makes kube-controller-manager bind the volume only to this claim.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || ptr.Deref(claim.Spec.StorageClassName, "") != storageClass {
		return nil
	}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// volumeFor returns the PersistentVolume for a PersistentVolumeClaim. The volume's hostPath need
// not exist, because simulated nodes mount nothing.
func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              storageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + string(claim.UID)}},
		},
	}
}

// reclaim deletes a volume in the phase Released. This phase means that the volume's claim was
// deleted.
func (p *provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.StorageClassName != storageClass || volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil {
		return nil
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(volume.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
