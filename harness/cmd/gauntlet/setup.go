package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

func newSetup() *cobra.Command {
	var nodes bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Build the programs that gauntlet runs",
		Long: `Build etcd, Kubernetes and KWOK from Go modules into the cache, and our controllers
if this gauntlet was installed without its source tree. The command builds only
programs that are missing. The first time, it takes about 7 minutes on 2 cores. The
other commands do the same when they need a program.

The command prints the paths of all programs to standard output.`,
		Example: `  gauntlet setup`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build := setUpAll
			if nodes {
				build = setup.Nodes
			}
			paths, err := build(cmd.Context())
			if errors.Is(err, setup.ErrCache) {
				return err
			}
			if err != nil {
				return &unfinishedError{err}
			}
			for _, path := range paths {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), path); err != nil {
					return &unfinishedError{err}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&nodes, "nodes", false, "build the programs of a kind node image instead")
	return cmd
}

// setUpAll builds the programs of the embedded control plane and our controllers, if they are
// missing. It returns the paths of all these programs.
func setUpAll(ctx context.Context) ([]string, error) {
	paths, err := setup.Upstream(ctx)
	if err != nil {
		return nil, err
	}
	_, ours, err := executables(ctx, subject.Ours)
	return append(paths, ours), err
}
