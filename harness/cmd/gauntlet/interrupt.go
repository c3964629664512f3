package main

import (
	"context"
	"errors"
	"io"
)

// orInterrupted calls its argument work and returns the results. If ctx ends first, orInterrupted
// returns an error at once, although work still runs. The caller must then end the process.
//
// The end of the process stops work at any point. Therefore work must only read files and write
// reports.
func orInterrupted[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type results struct {
		value T
		err   error
	}
	done := make(chan results, 1)
	go func() {
		value, err := work()
		done <- results{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, interrupted(ctx)
	}
}

// interrupted returns an error if ctx has ended because a user interrupted the command.
func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return &unfinishedError{errors.New("interrupted")}
	}
	return nil
}

// interruptibleWriter wraps a writer. Its writes fail after the context has ended.
type interruptibleWriter struct {
	ctx context.Context
	io.Writer
}

func (w *interruptibleWriter) Write(content []byte) (int, error) {
	if err := interrupted(w.ctx); err != nil {
		return 0, err
	}
	return w.Writer.Write(content)
}
