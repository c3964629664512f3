package faults

import "context"

// Background is a goroutine that does a fault's damage from its Inject to its Heal.
// The zero value has not begun.
type Background struct {
	cancel context.CancelFunc // gives up what is under way
	stop   chan struct{}      // closed: begin nothing more
	ended  chan struct{}      // closed by the goroutine at its end
}

// Begin runs what lasts, once. It is to finish what is under way and return soon
// after Stopping is closed. Its ctx does not end with the one given here, but when
// End loses patience.
func (l *Background) Begin(ctx context.Context, run func(ctx context.Context)) {
	l.stop, l.ended = make(chan struct{}), make(chan struct{})
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(l.ended)
		run(ctx)
	}()
}

// Stopping is closed when nothing more is to be begun.
func (l *Background) Stopping() <-chan struct{} { return l.stop }

// End lets what is under way come to its end, so that what is done is recorded,
// and returns then. Only when ctx does not allow that, it is given up, and the
// error is that of ctx. It may be called again, and before Begin.
func (l *Background) End(ctx context.Context) error {
	if l.ended == nil {
		return nil
	}
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	defer l.cancel()
	select {
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
