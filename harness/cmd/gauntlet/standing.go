package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/standing"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

const (
	upNodesDefault = 1
	upNodesMax     = 20
)

func newUp() *cobra.Command {
	var provider, target string
	plane, replicas := run.ControlPlane{}, 0
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up a control plane that stays up, with or without the four controllers",
		Long: `Bring up a control plane that stays up after the command, and print how to reach
it. The four controllers that gauntlet tests are those that --subject names, with
nothing between them and the API server, and without it there are none.

The path of its kubeconfig is all that goes to standard output.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plane.Nodes < 1 || plane.Nodes > upNodesMax {
				return fmt.Errorf("--nodes=%d: expected 1 to %d", plane.Nodes, upNodesMax)
			}
			resident, err := residentOf(target, replicas)
			if err != nil {
				return err
			}
			terminal := newTerminal(cmd.ErrOrStderr())
			terminal.progress(provider, "bringing up the control plane")
			c, err := standing.Up(cmd.Context(), provider, plane, resident)
			if err != nil {
				return &unfinishedError{err}
			}
			terminal.progress(provider, c.Name+" is up")
			fmt.Fprintf(cmd.ErrOrStderr(), "\n    export KUBECONFIG=%s\n\n`gauntlet down %s` removes it.\n", c.Kubeconfig, c.Name)
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&provider, "provider", "embedded", "the kind of control plane: embedded, kind")
	f.StringVar(&target, "subject", noSubject, "whose controllers run on it: "+noSubject+", or as for gauntlet run")
	f.IntVar(&replicas, "replicas", 1, "how many replicas of them there are, of which one leads")
	nodeImageFlag(f, &plane.NodeImage)
	upstreamDirFlag(f, &plane.UpstreamDir)
	f.IntVar(&plane.Nodes, "nodes", upNodesDefault, "how many nodes take pods; on kind, more than one come beside a control plane that takes none")
	return cmd
}

// noSubject is what `gauntlet up` is told, or not told, for a control plane
// without the four controllers.
const noSubject = "none"

// residentOf is the subject that a command line asks for, nil if it asks for none.
func residentOf(target string, replicas int) (*run.StandingSubject, error) {
	if replicas < 1 || replicas > scenario.SubjectsMax {
		return nil, fmt.Errorf("--replicas=%d: expected 1 to %d", replicas, scenario.SubjectsMax)
	}
	if target == noSubject {
		return nil, nil
	}
	parsed, err := subject.ParseTarget(target)
	if err != nil {
		return nil, fmt.Errorf("%w, or %s", err, noSubject)
	}
	_, ours, err := executables()
	return &run.StandingSubject{Target: parsed, Replicas: replicas, Ours: ours}, err
}

func newDown() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [NAME…]",
		Short: "Remove control planes that `gauntlet up` left standing",
		Long: `Remove control planes that "gauntlet up" left standing: those named, or the only
one there is.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if all && len(names) > 0 {
				return fmt.Errorf("--all and %s: expected one or the other", strings.Join(names, ", "))
			}
			found, err := standing.List(cmd.Context())
			if err != nil {
				return &unfinishedError{err}
			}
			chosen, err := chooseDown(found, names, all)
			if err != nil {
				return err
			}
			for _, c := range chosen {
				if err := standing.Down(cmd.Context(), c); err != nil {
					return &unfinishedError{err}
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is down\n", c.Name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every one that is kept")
	return cmd
}

// chooseDown returns the clusters to take down. One that a run is using is not
// for the taking.
func chooseDown(found []standing.Cluster, names []string, all bool) ([]standing.Cluster, error) {
	byName := map[string]standing.Cluster{}
	var kept []standing.Cluster
	for _, c := range found {
		byName[c.Name] = c
		if c.State == standing.Standing {
			kept = append(kept, c)
		}
	}
	if len(names) == 0 {
		if !all && len(kept) != 1 {
			return nil, fmt.Errorf("which one? expected a NAME or --all, found %d: %s", len(kept), listed(kept))
		}
		return kept, nil
	}
	var chosen []standing.Cluster
	for _, name := range names {
		c, ok := byName[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("no control plane %q: expected one of %s", name, listed(kept))
		case c.State == standing.InUse:
			return nil, fmt.Errorf("%s is in use by a command that runs: end that one", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

func listed(all []standing.Cluster) string {
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func newClean() *cobra.Command {
	var onExisting existing.Options
	var provider string
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed commands left behind",
		Long: `Remove what killed commands left behind: containers, networks and state of
control planes that nobody uses and nobody asked to keep. With
--provider=existing, what a run left on a cluster that somebody else made.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if provider != "" && provider != faults.Existing {
				return fmt.Errorf("--provider=%s: expected existing, or nothing for all others", provider)
			}
			if provider != "" {
				return cleanExisting(cmd, onExisting)
			}
			removed, spared, err := standing.Clean(cmd.Context())
			tell(cmd.OutOrStdout(), removed, spared)
			if err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "existing for a cluster that somebody else made; nothing for all others")
	existingFlags(cmd.Flags(), &onExisting)
	return cmd
}

// cleanExisting removes what a killed run left on a cluster.
func cleanExisting(cmd *cobra.Command, o existing.Options) error {
	removed, err := standing.CleanExisting(cmd.Context(), o.Kubeconfig, o.Context)
	switch {
	case err != nil:
		return &unfinishedError{err}
	case removed:
		fmt.Fprintf(cmd.OutOrStdout(), "namespace %s: removed\n", existing.Namespace)
	default:
		fmt.Fprintln(cmd.OutOrStdout(), "nothing was left behind")
	}
	return nil
}

func tell(out io.Writer, removed, spared []standing.Cluster) {
	for _, c := range removed {
		fmt.Fprintf(out, "%s: removed\n", c.Name)
	}
	for _, c := range spared {
		fmt.Fprintf(out, "%s: %s\n", c.Name, c.State)
	}
	if len(removed) == 0 {
		fmt.Fprintln(out, "nothing was left behind")
	}
}

// newKeeper is what `gauntlet up` runs in the background; see package keep.
func newKeeper() *cobra.Command {
	return &cobra.Command{
		Use:    standing.HostCommand + " DIR NODES UPSTREAMDIR [SUBJECT REPLICAS OURS]",
		Short:  "Keep an embedded control plane",
		Hidden: true,
		Args:   cobra.RangeArgs(3, 6),
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := strconv.Atoi(args[1])
			if err != nil {
				return fmt.Errorf("NODES: %w", err)
			}
			var resident *run.StandingSubject
			if len(args) == 6 {
				replicas, err := strconv.Atoi(args[4])
				if err != nil {
					return fmt.Errorf("REPLICAS: %w", err)
				}
				target, err := subject.ParseTarget(args[3])
				if err != nil {
					return err
				}
				resident = &run.StandingSubject{Target: target, Replicas: replicas, Ours: args[5]}
			}
			plane := run.ControlPlane{Dir: args[0], Nodes: nodes, UpstreamDir: args[2]}
			return standing.Host(cmd.Context(), plane, resident, cmd.OutOrStdout())
		},
	}
}
