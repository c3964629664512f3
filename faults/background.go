package faults

import "context"

// Background runs a fault's goroutine from Inject to Heal. A fault embeds or contains
// the zero value and calls Begin in Inject and End in Heal.
type Background struct {
	cancel context.CancelFunc // cancels the operation in flight
	stop   chan struct{}      // closed: start no new operation
	ended  chan struct{}      // closed by the goroutine when it returns
}

// Begin starts run in a goroutine. Begin may be called once. After Stopping is closed,
// run must finish the operation in flight and return. Canceling ctx does not cancel the
// context of run. Only End cancels it, if its own ctx is done before run has returned.
func (b *Background) Begin(ctx context.Context, run func(ctx context.Context)) {
	b.stop, b.ended = make(chan struct{}), make(chan struct{})
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.ended)
		run(ctx)
	}()
}

// Stopping returns a channel that is closed when run must not start another operation.
func (b *Background) Stopping() <-chan struct{} { return b.stop }

// End closes Stopping and waits until the goroutine has returned. The operation in flight
// therefore finishes and is recorded. If ctx is done first, End cancels the operation and
// returns the error of ctx. End may be called again, and before Begin.
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
