package embedded

import (
	"context"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// reconcile processes one version of an object. It is called again with the same version after the
// duration again, unless that is 0. It is also called again later if it returns an error, such as one of
// an API server that a fault has killed.
type reconcile func(ctx context.Context, object any) (again time.Duration, err error)

// startReconciler calls a function for each new and each changed object of the given informers. The
// factory must have created the informers. The calls end when the caller calls the returned function stop.
func startReconciler(ctx context.Context, factory informers.SharedInformerFactory, reconcile reconcile, of ...cache.SharedIndexInformer) (stop func(), err error) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[any]())
	for _, informer := range of {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: queue.Add, UpdateFunc: func(_, object any) { queue.Add(object) },
		})
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	factory.StartWithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			object, shutDown := queue.Get()
			if shutDown {
				return
			}
			again, err := reconcile(ctx, object)
			switch {
			case err != nil:
				queue.AddRateLimited(object)
			case again > 0:
				queue.AddAfter(object, again)
			default:
				queue.Forget(object)
			}
			queue.Done(object)
		}
	}()
	return func() {
		queue.ShutDown()
		cancel()
		<-done
		factory.Shutdown()
	}, nil
}
