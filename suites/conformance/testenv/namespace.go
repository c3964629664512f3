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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Namespace is the Kubernetes namespace of one spec, which is a Ginkgo test. Its methods send
// requests with administrator rights. If the API server returns an error, a method without a
// result of type error fails the spec. Other methods return the error.
type Namespace struct {
	Name  string
	env   *Env
	store *store
	// heals contains the functions that heal the active faults, in the order in which the Ginkgo
	// spec injected the faults.
	heals        environment.Teardowns
	injected     int // number of faults that the Ginkgo spec has injected
	barrierCount int // number of calls of BarrierOf
	// stop ends the watches of the namespace. Cleanup calls stop, and then waits until the
	// goroutines of the watches have ended. The field group counts these goroutines.
	stop  context.CancelFunc
	group sync.WaitGroup
}

// NewNamespace creates a namespace for a Ginkgo spec and waits until pods can be created in it. If
// withProfile is true, it injects the faults of the suite's [Profile], if there is one. The caller
// must call Cleanup.
func (e *Env) NewNamespace(ctx context.Context, withProfile bool) (*Namespace, error) {
	if err := e.componentErr(); err != nil {
		return nil, err
	}
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-", Labels: map[string]string{specLabel: "true"}}}
	if err := e.in("").Create(ctx, created); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Namespace{Name: created.Name, env: e, store: newStore(), stop: stop}
	n.store.watch(watching, e.env.Admin, n.Name, &n.group)
	e.recorder.reset(n.store.notify)
	_, err := n.await(ctx, Query{"the initial lists of all watches and ServiceAccount/default", func(v *View) any {
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

// specLabel is the label that every namespace of a Ginkgo spec has. [Env.WaitNamespacesGone] finds
// the namespaces by this label.
const specLabel = "gauntlet/spec"

// cleanupTimeout is the maximum duration of Cleanup, which does not wait until the namespace is
// gone.
const cleanupTimeout = 30 * time.Second

// Cleanup heals all faults and deletes the namespace, without waiting until it is gone. It returns
// an error if an invariant of the Ginkgo spec was violated. If the spec has already failed because
// of this violation, Cleanup does not return the error again.
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
	all = append(all, client.IgnoreNotFound(n.delete(ctx)), n.env.removeFinalizers(ctx, n.Name))
	n.stop()
	n.group.Wait()
	return errors.Join(all...)
}

// removeFinalizers removes [Finalizer], which Ginkgo specs add, from objects in a namespace. These
// are pods, ReplicaSets and ReplicationControllers.
func (e *Env) removeFinalizers(ctx context.Context, namespace string) error {
	var all []error
	for _, name := range []string{PodKind, ReplicaSetKind, ReplicationControllerKind} {
		all = append(all, e.removeFinalizersOf(ctx, namespace, kindNamed(name)))
	}
	return errors.Join(all...)
}

// removeFinalizersOf removes Finalizer from all objects of one kind in a namespace.
func (e *Env) removeFinalizersOf(ctx context.Context, namespace string, k kind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.name + "List"))
	if err := e.in(namespace).List(ctx, list); err != nil {
		return err
	}
	var all []error
	for i := range list.Items {
		left := &list.Items[i]
		if !slices.Contains(left.Finalizers, Finalizer) {
			continue
		}
		left.SetGroupVersionKind(k.gvk)
		err := e.in(namespace).Patch(ctx, left, mergePatch(`{"metadata":{"finalizers":null}}`))
		all = append(all, client.IgnoreNotFound(err))
	}
	return errors.Join(all...)
}

// mergePatch returns a JSON merge patch as a value for the client. The argument is the patch as
// JSON.
func mergePatch(merge string) k8s.Patch {
	return k8s.Patch{PatchType: types.MergePatchType, Data: []byte(merge)}
}

// injectProfile injects all faults of the suite's fault profile in the namespace.
func (n *Namespace) injectProfile(ctx context.Context) error {
	if err := n.env.proxyMissing(); err != nil {
		return fmt.Errorf("injecting the faults of profile %s: %w", n.env.options.Profile.Name, err)
	}
	for _, fault := range n.env.options.Profile.Faults {
		if err := n.inject(ctx, fault); err != nil {
			return fmt.Errorf("injecting the faults of profile %s: %w", n.env.options.Profile.Name, err)
		}
	}
	return nil
}

// inject injects a fault, and appends the function that heals the fault to n.heals.
func (n *Namespace) inject(ctx context.Context, fault FaultSpec) error {
	heal, err := n.env.inject(ctx, fault, n.Name, n.injected)
	if err != nil {
		return err
	}
	n.injected++
	n.heals = append(n.heals, heal)
	return nil
}

// Inject injects a fault of the given type, such as "watch-delay". The argument params contains
// the parameters in YAML, as in a scenario. The fault stays active until a call of the returned
// function, of Heal or of Cleanup. The Ginkgo spec is skipped if the provider has no fault proxy.
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

// Heal heals all active faults of the Ginkgo spec, including the faults of the profile.
func (n *Namespace) Heal(ctx context.Context) {
	ginkgo.GinkgoHelper()
	heals := n.heals
	n.heals = nil
	gomega.Expect(heals.Run(ctx)).To(gomega.Succeed())
}

// Create creates an object in the namespace, and stores the API server's response in the argument
// o. It returns the kind and the name of the object.
func (n *Namespace) Create(ctx context.Context, o Object) Ref {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryCreate(ctx, o)).To(gomega.Succeed())
	return RefOf(o)
}

// TryCreate creates an object as Create does. It returns an error instead of failing the Ginkgo
// spec.
func (n *Namespace) TryCreate(ctx context.Context, o Object) error {
	o.SetNamespace(n.Name)
	tried := 0
	if err := retryServerErrors(ctx, func() error {
		tried++
		err := n.resources().Create(ctx, o)
		if tried > 1 && apierrors.IsAlreadyExists(err) { // an earlier attempt created the object
			return n.resources().Get(ctx, o.GetName(), n.Name, o)
		}
		return err
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, RefOf(o).Kind, o)
}

// WouldCreate sends a create request with dryRun=All, and returns the error of the request. The
// API server stores nothing.
func (n *Namespace) WouldCreate(ctx context.Context, o Object) error {
	o.SetNamespace(n.Name)
	return n.resources().Create(ctx, o, func(o *metav1.CreateOptions) { o.DryRun = []string{metav1.DryRunAll} })
}

// CreatePods creates count pods in parallel. The argument pod is a function that returns the pod
// with index i. CreatePods copies each returned pod, because the pods may share maps.
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

// Patch applies a JSON merge patch to an object. The arguments merge and args are the format and
// the values of the patch, as for fmt.Sprintf.
func (n *Namespace) Patch(ctx context.Context, ref Ref, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryPatch(ctx, ref, merge, args...)).To(gomega.Succeed(), "patching %s", ref)
}

// TryPatch patches an object as Patch does. It returns an error instead of failing the Ginkgo
// spec.
func (n *Namespace) TryPatch(ctx context.Context, ref Ref, merge string, args ...any) error {
	return n.patch(ctx, ref, "", fmt.Sprintf(merge, args...))
}

// PatchSubresource applies a JSON merge patch to the subresource "status" or "scale" of an
// object.
func (n *Namespace) PatchSubresource(ctx context.Context, ref Ref, subresource, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.patch(ctx, ref, subresource, fmt.Sprintf(merge, args...))).To(gomega.Succeed(), "patching the %s of %s", subresource, ref)
}

// patch applies a JSON merge patch to an object. If the argument subresource is not empty, it
// patches this subresource instead. It waits until the watches of testenv have delivered the
// result. Later queries then find the change.
func (n *Namespace) patch(ctx context.Context, ref Ref, subresource, merge string) error {
	target := n.object(ref)
	response := target
	if subresource == "scale" {
		response = &autoscalingv1.Scale{}
	}
	if err := retryServerErrors(ctx, func() error {
		switch subresource {
		case "":
			return n.resources().Patch(ctx, target, mergePatch(merge))
		case "scale": // the response is a Scale, not the patched object
			return n.resources().GetControllerRuntimeClient().SubResource(subresource).Patch(ctx, target,
				client.RawPatch(types.MergePatchType, []byte(merge)), &client.SubResourcePatchOptions{SubResourceBody: response})
		default:
			return n.resources().PatchSubresource(ctx, target, subresource, mergePatch(merge))
		}
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, ref.Kind, response)
}

// retryServerErrors calls its argument write again while the API server answers with status 500
// or higher. It gives up after about 6 seconds. A slow machine may cause this status, and specs
// do not test the API server.
//
// A write may have succeeded although its response had this status. The argument write must
// therefore not fail because an earlier attempt has succeeded.
func retryServerErrors(ctx context.Context, write func() error) error {
	backoff := apiwait.Backoff{Steps: 6, Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1} // about 6 s in total
	var last error
	err := apiwait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = write()
		if status, ok := errors.AsType[*apierrors.StatusError](last); ok && status.ErrStatus.Code >= http.StatusInternalServerError {
			return false, nil
		}
		return true, last
	})
	return cmp.Or(last, err)
}

// waitObserved waits until the watches of testenv have delivered an object, or a later version of
// it. The argument response is this object, as the API server returned it after a write. Queries
// after a write then never find an older version. The argument kind is the kind of the object.
func (n *Namespace) waitObserved(ctx context.Context, kind string, response Object) error {
	version, err := history.ParseVersion(response.GetResourceVersion())
	if err != nil {
		return err
	}
	_, err = n.await(ctx, Query{"the watch of kind " + kind + " to deliver the write", func(v *View) any {
		return v.store.seen[kind] >= version
	}}, gomega.BeTrue())
	return err
}

// Scale returns the subresource "scale" of an object, as the API server returns it.
func (n *Namespace) Scale(ctx context.Context, ref Ref) *autoscalingv1.Scale {
	ginkgo.GinkgoHelper()
	scale := &autoscalingv1.Scale{}
	gomega.Expect(n.resources().GetControllerRuntimeClient().SubResource("scale").Get(ctx, n.object(ref), scale)).
		To(gomega.Succeed(), "reading the scale of %s", ref)
	return scale
}

// Replace reads an object into o, calls its argument edit to change o, and sends o as an update.
// It works like kubectl replace, and retries after a conflict.
func (n *Namespace) Replace(ctx context.Context, o Object, edit func()) {
	ginkgo.GinkgoHelper()
	ref := RefOf(o)
	gomega.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := n.resources().Get(ctx, ref.Name, n.Name, o); err != nil {
			return err
		}
		edit()
		if err := n.resources().Update(ctx, o); err != nil {
			return err
		}
		return n.waitObserved(ctx, ref.Kind, o)
	})).To(gomega.Succeed(), "replacing %s", ref)
}

// PutScale sets spec.replicas of an object through its scale subresource. It retries after a
// conflict. It returns when the watch of testenv has delivered the change.
func (n *Namespace) PutScale(ctx context.Context, ref Ref, replicas int32) {
	ginkgo.GinkgoHelper()
	gomega.Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale := n.Scale(ctx, ref)
		scale.Spec.Replicas = replicas
		err := n.resources().GetControllerRuntimeClient().SubResource("scale").Update(ctx, n.object(ref), client.WithSubResourceBody(scale))
		if err != nil {
			return err
		}
		return n.waitObserved(ctx, ref.Kind, scale)
	})).To(gomega.Succeed(), "scaling %s", ref)
}

// Delete deletes an object, and does not wait until the object is gone. The propagation policy
// "" means the default of the API server.
func (n *Namespace) Delete(ctx context.Context, ref Ref, propagation metav1.DeletionPropagation) {
	ginkgo.GinkgoHelper()
	var options []resources.DeleteOption
	if propagation != "" {
		options = append(options, resources.WithDeletePropagation(string(propagation)))
	}
	tried := 0
	gomega.Expect(retryServerErrors(ctx, func() error {
		tried++
		err := n.resources().Delete(ctx, n.object(ref), options...)
		if tried > 1 {
			return client.IgnoreNotFound(err)
		}
		return err
	})).To(gomega.Succeed(), "deleting %s", ref)
}

// DeleteAll deletes all objects of a kind that match a label selector. It does not wait until
// they are gone.
func (n *Namespace) DeleteAll(ctx context.Context, kind string, labels map[string]string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.resources().GetControllerRuntimeClient().DeleteAllOf(ctx, n.object(Ref{kind, ""}),
		client.InNamespace(n.Name), client.MatchingLabels(labels))).To(gomega.Succeed())
}

// DeleteNamespace deletes the namespace of the Ginkgo spec, and does not wait until it is gone.
func (n *Namespace) DeleteNamespace(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.delete(ctx)).To(gomega.Succeed())
}

func (n *Namespace) delete(ctx context.Context) error {
	return n.env.in("").Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}})
}

// Restart stops all replicas of the program under test with SIGTERM and starts them again. It does
// not wait until a replica holds the lease. If the program runs in pods, Restart skips the Ginkgo
// spec.
func (n *Namespace) Restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	subject := n.env.env.Subject
	if subject == nil {
		ginkgo.Skip(fmt.Sprintf("provider %s runs the subject in pods; gauntlet can restart only a subject that runs as local processes", n.env.options.Provider))
	}
	for _, replica := range subject.Replicas() {
		_, err := subject.Terminate(ctx, replica)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(subject.Start(ctx, replica)).To(gomega.Succeed())
	}
}

// RequireKubelets skips the Ginkgo spec if KWOK simulates the nodes. The argument why is the
// reason why the spec needs a real kubelet, for the skip message.
func (n *Namespace) RequireKubelets(why string) {
	ginkgo.GinkgoHelper()
	if n.env.simulatedNodes {
		ginkgo.Skip("needs a real kubelet: " + why)
	}
}

// RequireSimulatedKubelets skips the Ginkgo spec if the kubelets are real. A real kubelet
// overwrites a pod status that a spec writes. The argument why is the reason why the spec needs
// simulated kubelets, for the skip message.
func (n *Namespace) RequireSimulatedKubelets(why string) {
	ginkgo.GinkgoHelper()
	if !n.env.simulatedNodes {
		ginkgo.Skip("needs simulated kubelets: " + why)
	}
}

// Requests returns the tested program's requests with the given verb and resource in the
// namespace. An example is Requests("create", "pods"). If the provider has no fault proxy,
// Requests skips the Ginkgo spec.
func (n *Namespace) Requests(verb, resource string) []history.Request {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	return n.env.recorder.requests(n.Name, verb, resource)
}

// resources returns a client for the objects in the namespace.
func (n *Namespace) resources() *resources.Resources { return n.env.in(n.Name) }

// object returns an object that has only the kind and the name in ref. A client can get, patch or
// delete an object with it.
func (n *Namespace) object(ref Ref) Object {
	o := kindNamed(ref.Kind).example.DeepCopyObject().(Object)
	o.SetNamespace(n.Name)
	o.SetName(ref.Name)
	return o
}

// requireProxy skips the Ginkgo spec if the provider has no fault proxy.
func (n *Namespace) requireProxy() {
	ginkgo.GinkgoHelper()
	if err := n.env.proxyMissing(); err != nil {
		ginkgo.Skip(err.Error())
	}
}

// LatestDelivered returns a query for a bool: whether the program under test has received an
// object's current version. Only watch events count. If the provider has no fault proxy,
// LatestDelivered skips the Ginkgo spec.
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

// FaultsFired returns a query for an int: how often faults of a type, such as "watch-delay", have
// fired. A fault fires each time it changes something, such as delaying one watch event.
func (n *Namespace) FaultsFired(kind string) Query {
	return Query{"the fault " + kind + " to fire", func(*View) any { return n.env.recorder.faultsFired(kind) }}
}

// WaitNamespacesGone waits until the namespaces of all Ginkgo specs are gone. It removes Finalizer
// from their objects repeatedly, because the controllers may still create objects after Cleanup.
func (e *Env) WaitNamespacesGone(ctx context.Context) error {
	const every = 500 * time.Millisecond
	var left corev1.NamespaceList
	err := wait.For(func(ctx context.Context) (bool, error) {
		if err := e.in("").List(ctx, &left, resources.WithLabelSelector(specLabel)); err != nil {
			return false, err
		}
		for _, namespace := range left.Items {
			if err := e.removeFinalizers(ctx, namespace.Name); err != nil {
				return false, err
			}
		}
		return len(left.Items) == 0, nil
	}, wait.WithContext(ctx), wait.WithInterval(every), wait.WithImmediate())
	if err != nil {
		var names []string
		for _, namespace := range left.Items {
			names = append(names, namespace.Name)
		}
		return fmt.Errorf("waiting for the deletion of namespaces %v: %w", names, err)
	}
	return nil
}
