package faults

import "context"

// Background runs the goroutine of a fault that takes time or acts repeatedly, such as
// node-drain. The goroutine runs from Inject to Heal.
//
// A fault type embeds a Background. It calls Begin in its Inject method, and End in its Heal
// method. The zero value is ready for Begin.
type Background struct {
	cancel context.CancelFunc // cancels the context of the fault's goroutine
	stop   chan struct{}      // closed by End; the fault's goroutine then starts no new operation
	ended  chan struct{}      // closed when the fault's goroutine has ended
}

// Begin starts the fault's goroutine, which calls the callback run. A fault must call Begin only
// once.
//
// After a call of End, run must finish its current operation and return; see Stopping. The context
// of run stays valid when the argument ctx is canceled. Only End cancels the context of run, and
// only if run takes too long.
func (b *Background) Begin(ctx context.Context, run func(ctx context.Context)) {
	b.stop, b.ended = make(chan struct{}), make(chan struct{})
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.ended)
		run(ctx)
	}()
}

// Stopping returns a channel that End closes to stop the fault's goroutine. After that, the
// goroutine must start no further operation, such as an eviction.
func (b *Background) Stopping() <-chan struct{} { return b.stop }

// End stops the goroutine that Begin started, and waits until the goroutine has returned. The
// goroutine finishes its current operation first, so that the history contains the record of the
// operation.
//
// If ctx is done before the goroutine has returned, End cancels the goroutine's context and returns
// ctx.Err(). End may be called more than once. If Begin was never called, End returns nil.
func (b *Background) End(ctx context.Context) error {
	if b.ended == nil {
		return nil
	}
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	defer b.cancel()
	select {
	case <-b.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
