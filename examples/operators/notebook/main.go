// Command notebook is a small operator. Tests of gauntlet insert bugs into its source.
//
// The operator reconciles Notebooks. A Notebook has a PersistentVolumeClaim if its spec.storage is
// set, and none otherwise. With --webhook-bind-address, the operator serves admission webhooks and a
// conversion webhook.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// finalizer is the finalizer of each Notebook. A Notebook's PersistentVolumeClaim has the
// Notebook's name, followed by claimSuffix.
const finalizer, claimSuffix = "example.com/notebook", "-data"

var (
	notebooks = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notebooks"}
	claims    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// operator creates or deletes the PersistentVolumeClaim of each Notebook, as the Notebook's spec
// asks. It also adds and removes a finalizer, and writes status.observedGeneration.
type operator struct {
	client            dynamic.Interface
	notebooks, claims cache.Indexer // informer caches of the two kinds
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	webhooks := flag.String("webhook-bind-address", "", "the address for admission webhooks; without it, the operator serves none")
	certificates := flag.String("webhook-cert-path", "", "the directory with tls.crt and tls.key")
	flag.Parse()
	if *webhooks != "" {
		go serveWebhooks(ctx, *webhooks, *certificates)
	}
	client := dynamic.NewForConfigOrDie(must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	notebookInformer, claimInformer := factory.ForResource(notebooks).Informer(), factory.ForResource(claims).Informer()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	context.AfterFunc(ctx, queue.ShutDown)
	o := &operator{client, notebookInformer.GetIndexer(), claimInformer.GetIndexer()}
	enqueue := func(object any) {
		name := must(cache.DeletionHandlingObjectToName(object))
		queue.Add(cache.NewObjectName(name.Namespace, strings.TrimSuffix(name.Name, claimSuffix)))
	}
	for _, informer := range []cache.SharedIndexInformer{notebookInformer, claimInformer} {
		must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue}))
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for name, ended := queue.Get(); !ended; name, ended = queue.Get() {
		if err := o.reconcile(ctx, name); err != nil {
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// must returns the value. It panics if err is not nil.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// cached returns a copy of an object in an informer cache. It returns nil if the cache has no
// object with this name.
func cached(indexer cache.Indexer, name cache.ObjectName) *unstructured.Unstructured {
	object, ok, err := indexer.GetByKey(name.String())
	if err != nil || !ok {
		return nil
	}
	return object.(*unstructured.Unstructured).DeepCopy()
}

// reconcile adds the finalizer of a Notebook, creates or deletes its PersistentVolumeClaim, and
// writes its status.
func (o *operator) reconcile(ctx context.Context, name cache.ObjectName) error {
	notebook := cached(o.notebooks, name)
	if notebook == nil {
		return nil
	}
	own := slices.Contains(notebook.GetFinalizers(), finalizer)
	if terminating := notebook.GetDeletionTimestamp() != nil; terminating && own { // the garbage collector deletes the claim
		return o.setFinalizers(ctx, notebook, slices.DeleteFunc(notebook.GetFinalizers(), func(f string) bool { return f == finalizer }))
	} else if terminating {
		return nil
	} else if !own {
		return o.setFinalizers(ctx, notebook, append(notebook.GetFinalizers(), finalizer))
	}
	if err := o.reconcileClaim(ctx, notebook); err != nil {
		return err
	}
	if observed, _, _ := unstructured.NestedInt64(notebook.Object, "status", "observedGeneration"); observed == notebook.GetGeneration() {
		return nil
	}
	notebook.Object["status"] = map[string]any{"observedGeneration": notebook.GetGeneration()}
	_, err := o.client.Resource(notebooks).Namespace(name.Namespace).UpdateStatus(ctx, notebook, metav1.UpdateOptions{})
	return err
}

// setFinalizers replaces the finalizers of a Notebook.
func (o *operator) setFinalizers(ctx context.Context, notebook *unstructured.Unstructured, finalizers []string) error {
	patch := must(json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": notebook.GetResourceVersion()}}))
	_, err := o.client.Resource(notebooks).Namespace(notebook.GetNamespace()).Patch(ctx, notebook.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// storage returns spec.storage of a Notebook, such as "1Gi". It returns "" if the Notebook needs no
// PersistentVolumeClaim.
func storage(notebook *unstructured.Unstructured) string {
	size, _, _ := unstructured.NestedString(notebook.Object, "spec", "storage")
	return size
}

// reconcileClaim creates the PersistentVolumeClaim of a Notebook if spec.storage is set. If
// spec.storage is not set, reconcileClaim deletes the PersistentVolumeClaim.
func (o *operator) reconcileClaim(ctx context.Context, notebook *unstructured.Unstructured) error {
	claim, size := cached(o.claims, cache.NewObjectName(notebook.GetNamespace(), notebook.GetName()+claimSuffix)), storage(notebook)
	client := o.client.Resource(claims).Namespace(notebook.GetNamespace())
	switch {
	case claim == nil && size != "":
		_, err := client.Create(ctx, newClaim(notebook, size), metav1.CreateOptions{})
		return err
	case claim == nil || size != "" || claim.GetDeletionTimestamp() != nil:
		return nil
	}
	// The cached Notebook may be older than the claim, so read the Notebook from the API server.
	live, err := o.client.Resource(notebooks).Namespace(notebook.GetNamespace()).Get(ctx, notebook.GetName(), metav1.GetOptions{})
	if err != nil || storage(live) != "" {
		return err
	}
	return client.Delete(ctx, claim.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.GetUID()))})
}

// newClaim returns the PersistentVolumeClaim to create for a Notebook. The Notebook is its
// controller, and size is its storage request.
func newClaim(notebook *unstructured.Unstructured, size string) *unstructured.Unstructured {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": size}}},
	}}
	claim.SetName(notebook.GetName() + claimSuffix)
	claim.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(notebook, notebooks.GroupVersion().WithKind("Notebook"))})
	return claim
}
