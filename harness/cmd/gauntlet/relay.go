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

// newRelay returns the hidden command that runs beside the program under test in the program's
// pod. The command forwards the program's connections to the fault proxy; see package relay.
func newRelay() *cobra.Command {
	var subject, control, identity string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:    "relay",
		Short:  "Forward the connections of a subject in a pod to the fault proxy",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if patience <= 0 {
				return fmt.Errorf("--patience=%s: expected more than 0s", patience)
			}
			credentials, err := relay.ReadIdentity(identity)
			if err != nil {
				return fmt.Errorf("--identity: %w", err)
			}
			var listeners [2]net.Listener
			for i, address := range []string{subject, control} {
				listeners[i], err = new(net.ListenConfig).Listen(cmd.Context(), "tcp", address)
				if err != nil {
					return &unfinishedError{err} // the process exits now, which closes the listeners
				}
			}
			err = relay.Serve(cmd.Context(), relay.Options{
				Subject: listeners[0], Control: listeners[1], Identity: credentials, Patience: patience,
				Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
			})
			if err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&subject, "subject", "", "the `host:port` on which the subject connects")
	f.StringVar(&control, "control", "", "the `host:port` on which gauntlet connects")
	f.StringVar(&identity, "identity", "", "the `directory` with the certificate of the relay, its key, and the certificate authority that it trusts")
	f.DurationVar(&patience, "patience", 0, "how long a connection of the subject waits until gauntlet connects")
	var required []error
	for _, name := range []string{"subject", "control", "identity", "patience"} {
		required = append(required, cmd.MarkFlagRequired(name))
	}
	if err := errors.Join(required...); err != nil {
		panic(err) // impossible: the command has all these flags
	}
	return cmd
}
