package controlplane

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// moveIntoBubble replaces variables of Kubernetes that were created outside of the bubble of
// testing/synctest. These variables contain a channel and a time. A goroutine that waits for one of
// them would stop the virtual clock.
func moveIntoBubble() {
	wait.NeverStop = make(chan struct{})
	// One of the default handlers waits between errors. It remembers the real time of its creation,
	// which is years after the virtual time. It would thus wait for years.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, keysAndValues ...any) {
			klog.ErrorSDepth(3, err, message, keysAndValues...)
		},
	}
}
