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

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Namespace is where one spec lives. What it does, it does as an admin would, and
// fails the spec if that is refused.
type Namespace struct {
	Name  string
	env *Env
	store *store
	// heals undo what goes wrong at the moment, in the order in which it was injected.
	heals    []func(context.Context) error
	injected int // faults so far
	barrierCount int // so far
	// stop ends the watches, which group waits for.
	stop  context.CancelFunc
	group sync.WaitGroup
}

// NewNamespace makes a namespace and returns when pods can be made in it. Whatever the
// world's profile has goes wrong from then on, unless calm. The caller is to Leave.
func (w *Env) NewNamespace(ctx context.Context, calm bool) (*Namespace, error) {
	if err := w.componentErr(); err != nil {
		return nil, err
	}
	made, err := w.admin.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-", Labels: map[string]string{specLabel: "true"}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Namespace{Name: made.Name, env: w, store: newStore(), stop: stop}
	n.store.watch(watching, w.admin, n.Name, &n.group)
	w.recorder.reset(n.store.notify)
	_, err = n.await(ctx, Query{"every watch and the default service account", func(v *View) any {
		return len(v.store.synced) == len(kinds) && v.Has(Ref{serviceAccountKind, "default"})
	}}, gomega.BeTrue())
	if err == nil && w.options.Profile != nil && !calm {
		err = n.injectProfile(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Cleanup(ctx))
	}
	return n, nil
}

// specLabel tells the namespaces of specs from others.
const specLabel = "gauntlet/spec"

// cleanupTimeout bounds the end of a namespace, but for its being gone.
const cleanupTimeout = 30 * time.Second

// Cleanup heals whatever goes wrong, has the namespace removed with all that is in
// it, and says what did not hold that always should.
func (n *Namespace) Cleanup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	all := []error{healFaults(ctx, n.heals)}
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

// removeFinalizers removes the finalizer that has pods stay, and what controls them.
func (w *Env) removeFinalizers(ctx context.Context, namespace string) error {
	var all []error
	for _, name := range []string{PodKind, ReplicaSetKind, ReplicationControllerKind} {
		all = append(all, w.removeFinalizersOf(ctx, namespace, kindNamed(name)))
	}
	return errors.Join(all...)
}

func (w *Env) removeFinalizersOf(ctx context.Context, namespace string, k kind) error {
	client := k.client(w.admin)
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

// injectProfile puts the profile's faults in force.
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

func (n *Namespace) inject(ctx context.Context, fault FaultSpec) error {
	heal, err := n.env.inject(ctx, fault, n.Name, n.injected)
	if err != nil {
		return err
	}
	n.injected++
	n.heals = append(n.heals, heal)
	return nil
}

// Inject has something go wrong between the subject and the API server: a fault of
// the catalogue, with parameters as scenarios have them. It is healed by heal, or
// with everything else. Where there is no way to do it the spec is skipped.
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

// Heal ends everything that goes wrong.
func (n *Namespace) Heal(ctx context.Context) {
	ginkgo.GinkgoHelper()
	heals := n.heals
	n.heals = nil
	gomega.Expect(healFaults(ctx, heals)).To(gomega.Succeed())
}

// Create makes an object and returns it as the API server has it.
func (n *Namespace) Create(ctx context.Context, o Object) Ref {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryCreate(ctx, o)).To(gomega.Succeed())
	return RefOf(o)
}

// TryCreate is Create that may be refused.
func (n *Namespace) TryCreate(ctx context.Context, o Object) error {
	k := kindNamed(RefOf(o).Kind)
	tried := 0
	if err := retryServerErrors(ctx, func() error {
		tried++
		err := n.rest(k).Post().Namespace(n.Name).Resource(k.resource).Body(o).Do(ctx).Into(o)
		if tried > 1 && apierrors.IsAlreadyExists(err) { // by the try that got no answer
			return n.rest(k).Get().Namespace(n.Name).Resource(k.resource).Name(o.GetName()).Do(ctx).Into(o)
		}
		return err
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, k, o)
}

// WouldCreate asks whether the API server would make an object, which it does not.
func (n *Namespace) WouldCreate(ctx context.Context, o Object) error {
	k := kindNamed(RefOf(o).Kind)
	return n.rest(k).Post().Namespace(n.Name).Resource(k.resource).Param("dryRun", metav1.DryRunAll).Body(o).Do(ctx).Error()
}

// CreatePods makes so many pods, several at a time. They may share what they are
// made of, such as labels: each is copied before the answers are read into it.
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

// Patch merges a patch in JSON into an object.
func (n *Namespace) Patch(ctx context.Context, ref Ref, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.TryPatch(ctx, ref, merge, args...)).To(gomega.Succeed(), "patching %s", ref)
}

// TryPatch is Patch that may be refused.
func (n *Namespace) TryPatch(ctx context.Context, ref Ref, merge string, args ...any) error {
	return n.patch(ctx, ref, "", fmt.Sprintf(merge, args...))
}

// PatchSubresource merges a patch in JSON into an object's "status" or "scale".
func (n *Namespace) PatchSubresource(ctx context.Context, ref Ref, subresource, merge string, args ...any) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.patch(ctx, ref, subresource, fmt.Sprintf(merge, args...))).To(gomega.Succeed(), "patching the %s of %s", subresource, ref)
}

func (n *Namespace) patch(ctx context.Context, ref Ref, subresource, merge string) error {
	k := kindNamed(ref.Kind)
	request := n.rest(k).Patch(types.MergePatchType).Namespace(n.Name).Resource(k.resource).Name(ref.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	var answer runtime.Object
	if err := retryServerErrors(ctx, func() (err error) {
		answer, err = request.Body([]byte(merge)).Do(ctx).Get()
		return err
	}); err != nil {
		return err
	}
	return n.waitObserved(ctx, k, answer)
}

// retryServerErrors sends a write again that the API server failed at, as when etcd does not answer
// in time on a slow machine: that says nothing of what a spec is about. The try before
// may have done it all the same.
func retryServerErrors(ctx context.Context, write func() error) error {
	backoff := wait.Backoff{Steps: 6, Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1} // 6 s
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

// waitObserved returns when the store has what an answer shows, so that no spec takes what
// was before for what comes of it.
func (n *Namespace) waitObserved(ctx context.Context, k kind, answer runtime.Object) error {
	written, err := meta.Accessor(answer)
	if err != nil {
		return err
	}
	version, err := history.ParseVersion(written.GetResourceVersion())
	if err != nil {
		return err
	}
	_, err = n.await(ctx, Query{"the watch of " + k.resource + " to bring what was written", func(v *View) any {
		return v.store.seen[k.name] >= version
	}}, gomega.BeTrue())
	return err
}

// Get reads something of an object, or one of its subresources, into an object.
func (n *Namespace) Get(ctx context.Context, ref Ref, subresource string, into Object) {
	ginkgo.GinkgoHelper()
	k := kindNamed(ref.Kind)
	request := n.rest(k).Get().Namespace(n.Name).Resource(k.resource).Name(ref.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	gomega.Expect(request.Do(ctx).Into(into)).To(gomega.Succeed(), "reading %s", ref)
}

// Replace reads an object into one, edits it, and writes it back as a whole, as
// kubectl replace does.
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

// PutScale reads an object's scale, sets its replicas and writes it back.
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

// Delete begins the deletion of an object, with a propagation, or the default's "".
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

// DeleteAll begins the deletion of all objects of a kind that have a label.
func (n *Namespace) DeleteAll(ctx context.Context, kind, selector string) {
	ginkgo.GinkgoHelper()
	k := kindNamed(kind)
	gomega.Expect(n.rest(k).Delete().Namespace(n.Name).Resource(k.resource).Param("labelSelector", selector).
		Body(deleteOptions("")).Do(ctx).Error()).To(gomega.Succeed())
}

func deleteOptions(propagation metav1.DeletionPropagation) *metav1.DeleteOptions {
	if propagation == "" {
		return &metav1.DeleteOptions{}
	}
	return &metav1.DeleteOptions{PropagationPolicy: &propagation}
}

// DeleteNamespace begins the deletion of the namespace itself.
func (n *Namespace) DeleteNamespace(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(n.env.admin.CoreV1().Namespaces().Delete(ctx, n.Name, metav1.DeleteOptions{})).To(gomega.Succeed())
}

// Restart ends the subject, with its time to finish, and starts it again. It leads
// when its lease lets it. Where it stands by itself the spec is skipped.
func (n *Namespace) Restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	subject := n.env.subject
	if subject == nil {
		ginkgo.Skip(fmt.Sprintf("on %s the subject stands by itself", n.env.options.Provider))
	}
	for _, replica := range subject.Replicas() {
		_, err := subject.Terminate(ctx, replica)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		gomega.Expect(subject.Start(ctx, replica)).To(gomega.Succeed())
	}
}

// RequireKubelets skips the spec where nodes are simulated.
func (n *Namespace) RequireKubelets(why string) {
	ginkgo.GinkgoHelper()
	if n.env.simulatedNodes {
		ginkgo.Skip("needs a real kubelet: " + why)
	}
}

// RequireSimulatedKubelets skips the spec where kubelets are real: they put right what others
// write into a pod's status.
func (n *Namespace) RequireSimulatedKubelets(why string) {
	ginkgo.GinkgoHelper()
	if !n.env.simulatedNodes {
		ginkgo.Skip("needs simulated kubelets: " + why)
	}
}

// Requests are those that the subject has sent about a resource of the namespace:
// Requests("create", "pods"). Where nobody has seen them the spec is skipped.
func (n *Namespace) Requests(verb, resource string) []history.Request {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	return n.env.recorder.requests(n.Name, verb, resource)
}

func (n *Namespace) rest(k kind) rest.Interface { return k.client(n.env.admin) }

// requireProxy skips the spec where nothing stands between the subject and the API
// server.
func (n *Namespace) requireProxy() {
	ginkgo.GinkgoHelper()
	if err := n.env.proxyMissing(); err != nil {
		ginkgo.Skip(err.Error())
	}
}

// LatestDelivered asks whether the subject has been told of an object as it is now. Where
// nobody would know the spec is skipped.
func (n *Namespace) LatestDelivered(ref Ref) Query {
	ginkgo.GinkgoHelper()
	n.requireProxy()
	return Query{fmt.Sprintf("the subject to be told of %s", ref), func(v *View) any {
		object := v.store.objects[ref]
		if object == nil {
			return false
		}
		version, err := history.ParseVersion(object.GetResourceVersion())
		return err == nil && n.env.recorder.delivered(kindNamed(ref.Kind).recorded, n.Name, ref.Name) >= version
	}}
}

// FaultsFired asks how often the faults of a kind have fired.
func (n *Namespace) FaultsFired(kind string) Query {
	return Query{"the fault " + kind + " to fire", func(*View) any { return n.env.recorder.faultsFired(kind) }}
}

// WaitNamespacesGone waits until the namespaces of all specs are gone. A pod whose create was under
// way when its namespace was left has yet to be let go.
func (w *Env) WaitNamespacesGone(ctx context.Context) error {
	const every = 500 * time.Millisecond
	var names []string
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		left, err := w.admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: specLabel})
		if err != nil {
			return false, err
		}
		names = nil
		for _, namespace := range left.Items {
			names = append(names, namespace.Name)
			if err := w.removeFinalizers(ctx, namespace.Name); err != nil {
				return false, err
			}
		}
		return len(names) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("namespaces of specs that are not gone: %v: %w", names, err)
	}
	return nil
}
