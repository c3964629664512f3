package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Namespace is the namespace of one spec. Its methods send requests with administrator rights.
// They fail the spec if the API server returns an error, except for methods that return an
// error.
type Namespace struct {
	Name  string
	env   *Env
	store *store
	// heals are the functions that heal the active faults, in the order in which the faults
	// were injected.
	heals        environment.Teardowns
	injected     int // number of faults injected so far
	barrierCount int // number of calls of BarrierOf
	// stop ends the watches. Cleanup waits until the reflectors in group have returned.
	stop  context.CancelFunc
	group sync.WaitGroup
}

// NewNamespace creates a namespace for a spec and waits until it is ready for pods. If
// withProfile is true, it injects the faults of the profile. The caller must call Cleanup.
func (e *Env) NewNamespace(ctx context.Context, withProfile bool) (*Namespace, error) {
	if err := e.componentErr(); err != nil {
		return nil, err
	}
	created, err := e.admin.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-", Labels: map[string]string{specLabel: "true"}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Namespace{Name: created.Name, env: e, store: newStore(), stop: stop}
	n.store.watch(watching, e.admin, n.Name, &n.group)
	e.recorder.reset(n.store.notify)
	_, err = n.await(ctx, Query{"the initial lists of all watches and ServiceAccount/default", func(v *View) any {
		return len(v.store.synced) == len(kinds) && v.Has(Ref{serviceAccountKind, "default"})
	}}, gomega.BeTrue())
	if err == nil && e.options.Profile != nil && withProfile {
		err = n.injectProfile(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Cleanup(ctx))
	}
	return n, nil
}

// specLabel is the label of the namespaces of all specs.
const specLabel = "gauntlet/spec"

// cleanupTimeout is the maximum duration of Cleanup. Cleanup does not wait until the namespace
// is gone.
const cleanupTimeout = 30 * time.Second

// Cleanup heals all faults and deletes the namespace. If an invariant was violated and no wait
// has returned this error, Cleanup returns it.
func (n *Namespace) Cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	all := []error{n.heals.Run(ctx)}
	n.env.recorder.reset(nil)
	n.store.mu.Lock()
	if n.store.violation != "" && !n.store.reported {
		all = append(all, errors.New(n.store.violation+n.failureContext(&View{n.store})))
	}
	n.store.mu.Unlock()
	err := n.env.admin.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		all = append(all, err)
	}
	all = append(all, n.env.removeFinalizers(ctx, n.Name))
	n.stop()
	n.group.Wait()
	return errors.Join(all...)
}

// removeFinalizers removes Finalizer from all pods, ReplicaSets and ReplicationControllers of
// a namespace.
func (e *Env) removeFinalizers(ctx context.Context, namespace string) error {
	var all []error
	for _, name := range []string{PodKind, ReplicaSetKind, ReplicationControllerKind} {
		all = append(all, e.removeFinalizersOf(ctx, namespace, kindNamed(name)))
	}
	return errors.Join(all...)
}

// removeFinalizersOf removes Finalizer from all objects of one kind.
func (e *Env) removeFinalizersOf(ctx context.Context, namespace string, k kind) error {
	client := k.client(e.admin)
	list, err := client.Get().Namespace(namespace).Resource(k.resource).Do(ctx).Get()
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		left, err := meta.Accessor(item)
		if err != nil || !slices.Contains(left.GetFinalizers(), Finalizer) {
			return err
		}
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		err = client.Patch(types.MergePatchType).Namespace(namespace).Resource(k.resource).Name(left.GetName()).Body(patch).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// injectProfile injects the faults of the fault profile.
func (n *Namespace) injectProfile(ctx context.Context) error {
	if err := n.env.proxyMissing(); err != nil {
		return fmt.Errorf("profile %s: %w", n.env.options.Profile.Name, err)
	}
	for _, fault := range n.env.options.Profile.Faults {
		if err := n.inject(ctx, fault); err != nil {
			return fmt.Errorf("profile %s: %w", n.env.options.Profile.Name, err)
		}
	}
	return nil
}

// inject injects a fault and records how to heal it.
func (n *Namespace) inject(ctx context.Context, fault FaultSpec) error {
	heal, err := n.env.inject(ctx, fault, n.Name, n.injected)
	if err != nil {
		return err
	}
	n.injected++
	n.heals = append(n.heals, heal)
	return nil
}

// Inject injects a fault of the given type, with parameters in YAML as in a scenario. The
// fault stays active until the returned function, Heal or Cleanup heals it. The spec is
// skipped if the provider has no fault proxy.
func (n *Namespace) Inject(ctx context.Context, kind, params string) (heal func(context.Context)) {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	gomega.Expect(n.inject(ctx, FaultSpec{kind, params})).To(gomega.Succeed())
	undo := n.heals[len(n.heals)-1]
	return func(ctx context.Context) {
		ginkgo.GinkgoHelper()
		gomega.Expect(undo(ctx)).To(gomega.Succeed())
	}
}

// Heal heals all active faults of the spec.
func (n *Namespace) Heal(ctx context.Context) {
	ginkgo.GinkgoHelper()
	heals := n.heals
	n.heals = nil
	gomega.Expect(heals.Run(ctx)).To(gomega.Succeed())
}

// Create creates the object and stores the response in o. It returns the Ref of the object.
func (n *Namespace) Create(ctx context.Context, o Object) Ref {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryCreate(ctx, o)).To(gomega.Succeed())
	return RefOf(o)
}

// TryCreate creates an object as Create does, but returns an error instead of failing the
// spec.
func (n *Namespace) TryCreate(ctx context.Context, o Object) error {
	k := kindNamed(RefOf(o).Kind)
	tried := 0
	if err := retryServerErrors(ctx, func() error {
		tried++
		err := n.rest(k).Post().Namespace(n.Name).Resource(k.resource).Body(o).Do(ctx).Into(o)
		if tried > 1 && apierrors.IsAlreadyExists(err) { // an earlier attempt created the object
			return n.rest(k).Get().Namespace(n.Name).Resource(k.resource).Name(o.GetName()).Do(ctx).Into(o)
		}
		return err
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, k, o)
}

// WouldCreate sends a create as a dry run, which stores nothing, and returns its error.
func (n *Namespace) WouldCreate(ctx context.Context, o Object) error {
	k := kindNamed(RefOf(o).Kind)
	return n.rest(k).Post().Namespace(n.Name).Resource(k.resource).Param("dryRun", metav1.DryRunAll).Body(o).Do(ctx).Error()
}

// CreatePods creates count pods in parallel. The function pod returns the pod with index i;
// CreatePods copies it, because pods may share maps.
func (n *Namespace) CreatePods(ctx context.Context, count int, pod func(i int) *corev1.Pod) {
	ginkgo.GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range count {
		own := pod(i).DeepCopy()
		group.Go(func() error { return n.TryCreate(ctx, own) })
	}
	gomega.Expect(group.Wait()).To(gomega.Succeed())
}

// Patch applies a JSON merge patch to an object. It passes merge and args to fmt.Sprintf to
// get the patch.
func (n *Namespace) Patch(ctx context.Context, ref Ref, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryPatch(ctx, ref, merge, args...)).To(gomega.Succeed(), "patching %s", ref)
}

// TryPatch patches an object as Patch does, but returns an error instead of failing the spec.
func (n *Namespace) TryPatch(ctx context.Context, ref Ref, merge string, args ...any) error {
	return n.patch(ctx, ref, "", fmt.Sprintf(merge, args...))
}

// PatchSubresource applies a JSON merge patch to the subresource "status" or "scale" of an
// object.
func (n *Namespace) PatchSubresource(ctx context.Context, ref Ref, subresource, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.patch(ctx, ref, subresource, fmt.Sprintf(merge, args...))).To(gomega.Succeed(), "patching the %s of %s", subresource, ref)
}

// patch applies a JSON merge patch, and waits until the store contains the result.
func (n *Namespace) patch(ctx context.Context, ref Ref, subresource, merge string) error {
	k := kindNamed(ref.Kind)
	request := n.rest(k).Patch(types.MergePatchType).Namespace(n.Name).Resource(k.resource).Name(ref.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	var response runtime.Object
	if err := retryServerErrors(ctx, func() (err error) {
		response, err = request.Body([]byte(merge)).Do(ctx).Get()
		return err
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, k, response)
}

// retryServerErrors repeats a write while the API server answers with status 500 or higher,
// for about 6 seconds. A slow machine may cause this status, and specs do not test the API
// server. The function write must accept that an earlier attempt succeeded although it
// returned this status.
func retryServerErrors(ctx context.Context, write func() error) error {
	backoff := wait.Backoff{Steps: 6, Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1} // about 6 s in total
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = write()
		if status, ok := errors.AsType[*apierrors.StatusError](last); ok && status.ErrStatus.Code >= http.StatusInternalServerError {
			return false, nil
		}
		return true, last
	})
	return cmp.Or(last, err)
}

// waitObserved waits until the store contains the object version in a response. Queries after
// a write must not see an older state.
func (n *Namespace) waitObserved(ctx context.Context, k kind, response runtime.Object) error {
	written, err := meta.Accessor(response)
	if err != nil {
		return err
	}
	version, err := history.ParseVersion(written.GetResourceVersion())
	if err != nil {
		return err
	}
	_, err = n.await(ctx, Query{"the watch of " + k.resource + " to deliver the write", func(v *View) any {
		return v.store.seen[k.name] >= version
	}}, gomega.BeTrue())
	return err
}

// Get reads an object, or one of its subresources, into the variable into.
func (n *Namespace) Get(ctx context.Context, ref Ref, subresource string, into Object) {
	ginkgo.GinkgoHelper()
	k := kindNamed(ref.Kind)
	request := n.rest(k).Get().Namespace(n.Name).Resource(k.resource).Name(ref.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	gomega.Expect(request.Do(ctx).Into(into)).To(gomega.Succeed(), "reading %s", ref)
}

// Replace reads an object, edits it and updates it, as kubectl replace does. It retries after
// a conflict.
func (n *Namespace) Replace(ctx context.Context, o Object, edit func()) {
	ginkgo.GinkgoHelper()
	k, ref := kindNamed(RefOf(o).Kind), RefOf(o)
	gomega.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n.Get(ctx, ref, "", o)
		edit()
		if err := n.rest(k).Put().Namespace(n.Name).Resource(k.resource).Name(ref.Name).Body(o).Do(ctx).Into(o); err != nil {
			return err
		}
		return n.waitObserved(ctx, k, o)
	})).To(gomega.Succeed(), "replacing %s", ref)
}

// PutScale sets spec.replicas by an update of the scale subresource. It retries after a
// conflict.
func (n *Namespace) PutScale(ctx context.Context, ref Ref, replicas int32) {
	ginkgo.GinkgoHelper()
	k := kindNamed(ref.Kind)
	gomega.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var scale autoscalingv1.Scale
		n.Get(ctx, ref, "scale", &scale)
		scale.Spec.Replicas = replicas
		if err := n.rest(k).Put().Namespace(n.Name).Resource(k.resource).Name(ref.Name).SubResource("scale").Body(&scale).Do(ctx).Into(&scale); err != nil {
			return err
		}
		return n.waitObserved(ctx, k, &scale)
	})).To(gomega.Succeed(), "scaling %s", ref)
}

// Delete deletes an object and does not wait until it is gone. The propagation policy "" means
// the default of the API server.
func (n *Namespace) Delete(ctx context.Context, ref Ref, propagation metav1.DeletionPropagation) {
	ginkgo.GinkgoHelper()
	k := kindNamed(ref.Kind)
	tried := 0
	gomega.Expect(retryServerErrors(ctx, func() error {
		tried++
		err := n.rest(k).Delete().Namespace(n.Name).Resource(k.resource).Name(ref.Name).Body(deleteOptions(propagation)).Do(ctx).Error()
		if tried > 1 && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})).To(gomega.Succeed(), "deleting %s", ref)
}

// DeleteAll deletes the objects of a kind that match a label selector, and does not wait until
// they are gone.
func (n *Namespace) DeleteAll(ctx context.Context, kind, selector string) {
	ginkgo.GinkgoHelper()
	k := kindNamed(kind)
	gomega.Expect(n.rest(k).Delete().Namespace(n.Name).Resource(k.resource).Param("labelSelector", selector).
		Body(deleteOptions("")).Do(ctx).Error()).To(gomega.Succeed())
}

// deleteOptions returns the options of a delete request with the given propagation policy.
func deleteOptions(propagation metav1.DeletionPropagation) *metav1.DeleteOptions {
	if propagation == "" {
		return &metav1.DeleteOptions{}
	}
	return &metav1.DeleteOptions{PropagationPolicy: &propagation}
}

// DeleteNamespace deletes the namespace of the spec, and does not wait until it is gone.
func (n *Namespace) DeleteNamespace(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.env.admin.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{})).To(gomega.Succeed())
}

// Restart terminates all replicas of the subject gracefully and starts them again. It does not
// wait until a replica holds the lease. The spec is skipped if the subject runs in pods.
func (n *Namespace) Restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	subject := n.env.env.Subject
	if subject == nil {
		ginkgo.Skip(fmt.Sprintf("on %s the subject runs in pods, which gauntlet cannot restart", n.env.options.Provider))
	}
	for _, replica := range subject.Replicas() {
		_, err := subject.Terminate(ctx, replica)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(subject.Start(ctx, replica)).To(gomega.Succeed())
	}
}

// RequireKubelets skips the spec if KWOK simulates the nodes. The argument why says what the
// spec needs a real kubelet for. It is a part of the skip message.
func (n *Namespace) RequireKubelets(why string) {
	ginkgo.GinkgoHelper()
	if n.env.simulatedNodes {
		ginkgo.Skip("needs a real kubelet: " + why)
	}
}

// RequireSimulatedKubelets skips the spec if the kubelets are real. A real kubelet overwrites
// a pod status that a spec writes. The argument why is a part of the skip message.
func (n *Namespace) RequireSimulatedKubelets(why string) {
	ginkgo.GinkgoHelper()
	if !n.env.simulatedNodes {
		ginkgo.Skip("needs simulated kubelets: " + why)
	}
}

// Requests returns the requests that the subject sent for a resource in the namespace, for
// example of Requests("create", "pods"). The spec is skipped if the provider has no fault
// proxy.
func (n *Namespace) Requests(verb, resource string) []history.Request {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	return n.env.recorder.requests(n.Name, verb, resource)
}

// rest returns the REST client for the API group of the kind.
func (n *Namespace) rest(k kind) rest.Interface { return k.client(n.env.admin) }

// requireProxy skips the spec if the provider has no fault proxy.
func (n *Namespace) requireProxy() {
	ginkgo.GinkgoHelper()
	if err := n.env.proxyMissing(); err != nil {
		ginkgo.Skip(err.Error())
	}
}

// LatestDelivered returns a query that reports whether a watch has delivered the current
// version of an object to the subject. The spec is skipped if the provider has no fault proxy.
func (n *Namespace) LatestDelivered(ref Ref) Query {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	return Query{fmt.Sprintf("the latest version of %s to be delivered to the subject", ref), func(v *View) any {
		object := v.store.objects[ref]
		if object == nil {
			return false
		}
		version, err := history.ParseVersion(object.GetResourceVersion())
		return err == nil && n.env.recorder.delivered(kindNamed(ref.Kind).qualified, n.Name, ref.Name) >= version
	}}
}

// FaultsFired returns a query for the number of times that faults of the given type have
// fired, as an int.
func (n *Namespace) FaultsFired(kind string) Query {
	return Query{"the fault " + kind + " to fire", func(*View) any { return n.env.recorder.faultsFired(kind) }}
}

// WaitNamespacesGone waits until the namespaces of all specs are gone. It removes finalizers
// repeatedly, because the controllers may still create objects during Cleanup.
func (e *Env) WaitNamespacesGone(ctx context.Context) error {
	const every = 500 * time.Millisecond
	var names []string
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		left, err := e.admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: specLabel})
		if err != nil {
			return false, err
		}
		names = nil
		for _, namespace := range left.Items {
			names = append(names, namespace.Name)
			if err := e.removeFinalizers(ctx, namespace.Name); err != nil {
				return false, err
			}
		}
		return len(names) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the deletion of namespaces %v: %w", names, err)
	}
	return nil
}
