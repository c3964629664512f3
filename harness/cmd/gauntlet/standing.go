package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/standing"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

const (
	// upNodesDefault is the default of the flag --nodes, and upNodesMax is its maximum.
	upNodesDefault = 1
	upNodesMax     = 20
)

// checkUpDirectory returns an error if "gauntlet up" cannot create files in the directory of standing
// clusters.
func checkUpDirectory() error {
	if err := checkStateDirectory(); err != nil {
		return err
	}
	root, err := standing.Root()
	if err == nil {
		root, err = existing(root)
	}
	if err == nil {
		err = checkParent(root)
	}
	if err != nil {
		return fmt.Errorf("directory of standing clusters: %w; expected a directory in which files can be created; set XDG_STATE_HOME to one", err)
	}
	return nil
}

// checkStateDirectory returns an error if the directory of standing clusters, or its parent, is a file.
func checkStateDirectory() error {
	root, err := standing.Root()
	if err != nil {
		return err
	}
	if err := cmp.Or(inputfile.CheckDirectory(filepath.Dir(root)), inputfile.CheckDirectory(root)); err != nil {
		return fmt.Errorf("finding the directory of standing clusters: %w", err)
	}
	return nil
}

func newUp() *cobra.Command {
	var target string
	var o environment.Options
	var replicas int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane that stays up",
		Long: `Start a control plane that stays up after the command ends, and print how to reach
it. With --subject, the controllers under test run on it and connect
directly to the API server, without the fault proxy. Without --subject, nothing
reconciles their objects.

The command prints only the path of the kubeconfig to standard output.`,
		Example: `  gauntlet up
  gauntlet up --provider=kind --nodes=3 --subject=upstream
  export KUBECONFIG=$(gauntlet up)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.ControlPlane.Nodes < 1 || o.ControlPlane.Nodes > upNodesMax {
				return fmt.Errorf("--nodes=%d: expected 1 to %d", o.ControlPlane.Nodes, upNodesMax)
			}
			provider, err := providers.NamedWith(o.Provider, cluster.StandingClusters)
			if err != nil {
				return err
			}
			if err := provider.CheckFlags(cmd.Flags().Changed); err != nil {
				return err
			}
			if target == noSubject && cmd.Flags().Changed("replicas") {
				return errors.New("--replicas has no effect without a subject: add --subject, or omit --replicas")
			}
			if err := checkUpDirectory(); err != nil {
				return err
			}
			installed, err := standingSubject(cmd.Context(), provider, target, replicas)
			if err != nil {
				return err
			}
			if err := setUpStanding(cmd.Context(), provider, o.ControlPlane.UpstreamDir, installed); err != nil {
				return err
			}
			terminal := newTerminal(cmd.ErrOrStderr())
			terminal.progress(o.Provider, "starting the control plane")
			c, err := standing.Up(cmd.Context(), o, installed)
			if err != nil {
				return &unfinishedError{err}
			}
			terminal.progress(o.Provider, c.Name+" is up")
			fmt.Fprintf(cmd.ErrOrStderr(), "\n    export KUBECONFIG=%s\n\nTo remove it: gauntlet down %s\n", c.Kubeconfig, c.Name)
			fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig)
			return nil
		},
	}
	f := cmd.Flags()
	choiceFlag(f, &o.Provider, "provider", providers.Default(), providers.With(cluster.StandingClusters), "the provider of the control plane: "+strings.Join(providers.With(cluster.StandingClusters), ", "))
	f.StringVar(&target, "subject", noSubject, "the controllers to run on the control plane: "+noSubject+", or a value of --subject of \"gauntlet run\"")
	f.IntVar(&replicas, "replicas", 1, "how many replicas of the subject to run; one of them holds the lease")
	nodeImageFlag(f, &o.ControlPlane.NodeImage)
	f.BoolVar(&o.ControlPlane.DNS, "dns", true, "whether CoreDNS runs on a kind cluster; without it, the cluster is up a little earlier")
	upstreamDirFlag(f, &o.ControlPlane.UpstreamDir)
	f.IntVar(&o.ControlPlane.Nodes, "nodes", upNodesDefault, "how many schedulable nodes to create; on kind, with more than one, the control-plane node is not schedulable")
	return cmd
}

// noSubject is the value of --subject for a cluster in which nothing runs the controllers under
// test.
const noSubject = "none"

// setUpStanding builds the missing programs for a standing cluster, which is a control plane that
// stays up after "gauntlet up".
func setUpStanding(ctx context.Context, provider providers.Provider, upstreamDir string, installed *environment.SubjectOptions) error {
	var target subject.Target
	if installed != nil {
		target = installed.Target
		if err := environment.CheckTarget(provider, target); err != nil {
			return err
		}
	}
	return setUpPrograms(ctx, provider, target, upstreamDir)
}

// standingSubject returns the program under test that the flags --subject and --replicas select.
// For noSubject, it returns nil.
func standingSubject(ctx context.Context, provider providers.Provider, target string, replicas int) (*environment.SubjectOptions, error) {
	if replicas < 1 || replicas > scenario.SubjectsMax {
		return nil, fmt.Errorf("--replicas=%d: expected 1 to %d", replicas, scenario.SubjectsMax)
	}
	if target == noSubject {
		return nil, nil
	}
	parsed, err := subject.ParseTarget(target, noSubject)
	if err != nil {
		return nil, fmt.Errorf("--subject: %w", err)
	}
	if err := environment.CheckTarget(provider, parsed); err != nil {
		return nil, err
	}
	_, ours, err := executables(ctx, parsed)
	if err != nil {
		return nil, &unfinishedError{err}
	}
	return &environment.SubjectOptions{Target: parsed, Spec: scenario.Subject{Replicas: replicas}, Ours: ours}, nil
}

func newDown() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [NAME…]",
		Short: "Remove control planes that \"gauntlet up\" started",
		Long: `Remove control planes that "gauntlet up" started: the named ones, or the only one
that exists.`,
		Example: `  gauntlet down
  gauntlet down --all`,
		ValidArgsFunction: completeStanding,
		RunE: func(cmd *cobra.Command, names []string) error {
			if all && len(names) > 0 {
				return fmt.Errorf("found --all and the names %s; use either --all or names", strings.Join(names, ", "))
			}
			if _, err := standing.Root(); err != nil {
				return err // an environment variable is wrong
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
	cmd.Flags().BoolVar(&all, "all", false, "remove all control planes that \"gauntlet up\" started")
	return cmd
}

// chooseDown returns the clusters that "gauntlet down" removes. These are the named clusters, or
// all standing clusters if the argument all is true. Without names and without all, exactly one
// standing cluster must exist. chooseDown returns an error for a cluster that a running command
// uses.
func chooseDown(found []standing.Cluster, names []string, all bool) ([]standing.Cluster, error) {
	byName := map[string]standing.Cluster{}
	var up []standing.Cluster
	for _, c := range found {
		byName[c.Name] = c
		if c.State == standing.Standing {
			up = append(up, c)
		}
	}
	if len(names) == 0 {
		if !all && len(up) == 0 {
			return nil, errors.New("found no standing control plane; \"gauntlet up\" starts one")
		}
		if !all && len(up) != 1 {
			return nil, fmt.Errorf("found %d standing control planes (%s); expected exactly one; otherwise, add a NAME or --all", len(up), namesOf(up))
		}
		return up, nil
	}
	var chosen []standing.Cluster
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		c, ok := byName[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("control plane %q does not exist; standing control planes: %s%s", name, namesOf(up), nearest.Suggestion(name, slices.Sorted(maps.Keys(byName))))
		case c.State == standing.InUse:
			return nil, fmt.Errorf("control plane %s is in use by a running command: end that command first", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// namesOf returns the names of the clusters, separated by commas. Without clusters, it returns
// "none".
func namesOf(all []standing.Cluster) string {
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
	var onExisting cluster.Existing
	var provider string
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the leftovers of killed commands",
		Long: `Remove the containers, networks and state directories of control planes whose
command was killed. Control planes that "gauntlet up" started, or that a running
command uses, stay. With --provider=existing, remove the objects that a killed run left
on an existing cluster.`,
		Example: `  gauntlet clean
  gauntlet clean --provider=existing --context=test`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if provider != "" && provider != providers.Existing {
				return fmt.Errorf("--provider=%s: expected existing; to remove leftovers on this machine, omit --provider", provider)
			}
			if err := checkKubeconfig(onExisting.Kubeconfig); err != nil {
				return err
			}
			if provider != "" {
				return cleanExisting(cmd, onExisting)
			}
			if cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context") {
				return fmt.Errorf("--kubeconfig and --context have an effect only with --provider=%s; add this provider, or omit the two flags to remove leftovers on this machine", providers.Existing)
			}
			if _, err := standing.Root(); err != nil {
				return err // an environment variable is wrong
			}
			removed, spared, err := standing.Clean(cmd.Context())
			printCleaned(cmd.OutOrStdout(), removed, spared)
			if err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "\"existing\" removes objects from an existing cluster; without this flag, the command removes leftovers on this machine")
	existingFlags(cmd.Flags(), &onExisting)
	return cmd
}

// cleanExisting removes the objects that a killed run has left on an existing cluster.
func cleanExisting(cmd *cobra.Command, o cluster.Existing) error {
	if _, _, err := o.Load(); err != nil {
		return err
	}
	removed, err := environment.CleanExisting(cmd.Context(), o.Kubeconfig, o.Context)
	switch {
	case err != nil:
		return &unfinishedError{err}
	case removed:
		fmt.Fprintf(cmd.OutOrStdout(), "namespace %s: removed\n", environment.Namespace)
	default:
		fmt.Fprintln(cmd.OutOrStdout(), "nothing to remove")
	}
	return nil
}

// printCleaned prints which clusters were removed, and the state of each cluster that was not
// removed.
func printCleaned(out io.Writer, removed, spared []standing.Cluster) {
	for _, c := range removed {
		fmt.Fprintf(out, "%s: removed\n", c.Name)
	}
	for _, c := range spared {
		fmt.Fprintf(out, "%s: %s\n", c.Name, c.State)
	}
	if len(removed) == 0 {
		fmt.Fprintln(out, "nothing to remove")
	}
}

// newStandingHost returns the hidden command that hosts a standing cluster. "gauntlet up" starts
// this command in the background; see package standing.
func newStandingHost() *cobra.Command {
	return &cobra.Command{
		Use:    standing.HostCommand + " PROVIDER DIR NODES UPSTREAMDIR [SUBJECT REPLICAS OURS]",
		Short:  "Host a standing control plane",
		Hidden: true,
		Args:   cobra.RangeArgs(4, 7),
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := strconv.Atoi(args[2])
			if err != nil {
				return fmt.Errorf("argument NODES: found %q; expected a whole number", args[2])
			}
			var installed *environment.SubjectOptions
			if len(args) == 7 {
				replicas, err := strconv.Atoi(args[5])
				if err != nil {
					return fmt.Errorf("argument REPLICAS: found %q; expected a whole number", args[5])
				}
				target, err := subject.ParseTarget(args[4])
				if err != nil {
					return fmt.Errorf("argument SUBJECT: %w", err)
				}
				installed = &environment.SubjectOptions{Target: target, Spec: scenario.Subject{Replicas: replicas}, Ours: args[6]}
			}
			o := environment.Options{Provider: args[0], StateDir: args[1], ControlPlane: providers.Options{Nodes: nodes, UpstreamDir: args[3]}}
			return standing.Host(cmd.Context(), o, installed, cmd.OutOrStdout())
		},
	}
}
