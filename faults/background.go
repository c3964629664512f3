package faults

import "context"

// Background runs the goroutine of a fault between Inject and Heal.
//
// A fault embeds a Background, calls Begin in its Inject method and End in its Heal method. The
// zero value is ready for Begin.
type Background struct {
	cancel context.CancelFunc // cancels the context of run
	stop   chan struct{}      // closed by End; then run must start no new operation
	ended  chan struct{}      // closed when run has returned
}

// Begin starts a goroutine that calls run. A fault must call Begin only once.
//
// When End closes the channel that Stopping returns, run must finish its current operation and
// return. The context of run stays valid when ctx is canceled. End cancels it if run takes too
// long.
func (b *Background) Begin(ctx context.Context, run func(ctx context.Context)) {
	b.stop, b.ended = make(chan struct{}), make(chan struct{})
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.ended)
		run(ctx)
	}()
}

// Stopping returns a channel that End closes. When it is closed, the goroutine of the fault
// must start no further operation.
func (b *Background) Stopping() <-chan struct{} { return b.stop }

// End stops the goroutine that Begin started, and waits until it has returned. It lets the
// current operation finish, so that the history contains its record. If ctx is done first,
// End cancels the context of run and returns the error of ctx. End may be called more than
// once, and returns nil if Begin was never called.
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
