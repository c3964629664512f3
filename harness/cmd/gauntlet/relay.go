package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/faults/relay"
)

// newRelay is what stands beside a subject in its pod; see package relay.
func newRelay() *cobra.Command {
	var subject, control, identity string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:    "relay",
		Short:  "Carry the connections of a subject out of its pod",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return fmt.Errorf("--patience=%s: expected more than 0s", patience)
			}
			shown, err := relay.ReadIdentity(identity)
			if err != nil {
				return fmt.Errorf("--identity: %w", err)
			}
			var listeners [2]net.Listener
			for i, address := range []string{subject, control} {
				listeners[i], err = new(net.ListenConfig).Listen(cmd.Context(), "tcp", address)
				if err != nil {
					return &unfinishedError{err} // which closes what is open
				}
			}
			err = relay.Serve(cmd.Context(), relay.Options{
				Subject: listeners[0], Control: listeners[1], Identity: shown, Patience: patience,
				Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
			})
			if err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&subject, "subject", "", "`host:port` that the subject connects to")
	f.StringVar(&control, "control", "", "`host:port` that the test process connects to")
	f.StringVar(&identity, "identity", "", "the `directory` of the relay's certificate, its key, and the authority that it trusts")
	f.DurationVar(&patience, "patience", 0, "how long the subject waits for the test process")
	var required []error
	for _, name := range []string{"subject", "control", "identity", "patience"} {
		required = append(required, cmd.MarkFlagRequired(name))
	}
	if err := errors.Join(required...); err != nil {
		panic(err) // a flag that is not defined right above
	}
	return cmd
}
