package history

import (
	"time"

	"k8s.io/utils/clock"
)

// Every starts a goroutine that calls the callback do once per interval. The goroutine ends when
// the caller calls the result stop. After stop has returned, the goroutine makes no further call.
// The caller must call stop exactly once.
func Every(clock clock.WithTicker, interval time.Duration, do func()) (stop func()) {
	ticker, over, done := clock.NewTicker(interval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				do()
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
