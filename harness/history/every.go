package history

import (
	"time"

	"k8s.io/utils/clock"
)

// Every starts a goroutine that calls the function do once per interval, until the caller calls
// stop. After stop has returned, do is not called again. The caller must call stop exactly once.
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
