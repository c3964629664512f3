package environment

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/internal/process"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// cleanArgument is a command-line argument with which the guard process starts the program again.
// The program then only deletes what a killed run has left on an existing cluster. The next
// arguments are the working directory, the kubeconfig and the context.
const cleanArgument = "gauntlet-clean-existing"

func init() {
	process.RunOnly(cleanArgument, func(ctx context.Context, args []string) error {
		if len(args) != 3 {
			return fmt.Errorf("found %d arguments; expected a directory, a kubeconfig and a context", len(args))
		}
		if err := os.Chdir(args[0]); err != nil {
			return err
		}
		_, err := CleanExisting(ctx, args[1], args[2])
		return err
	})
}

// cleanupCommand returns the command with which the guard process cleans an existing cluster.
// The guard is a second process of the same program, which outlives the first. Therefore the
// command is /proc/self/exe, a path that works even after the program's file was removed.
func cleanupCommand(o cluster.Existing) []string {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/" // without a working directory, the kubeconfig's path must be absolute
	}
	return []string{"/proc/self/exe", cleanArgument, dir, o.Kubeconfig, o.Context}
}

// CleanExisting deletes the objects that a killed run has left on an existing cluster. The result
// removed is false if the run's namespace does not exist.
//
// The arguments kubeconfig and context are the path of a kubeconfig file and the name of a
// context. If they are empty, CleanExisting uses the file and the context that kubectl would use.
func CleanExisting(ctx context.Context, kubeconfig, context string) (removed bool, err error) {
	config, err := existing.Config(kubeconfig, context)
	if err != nil {
		return false, err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("existing cluster: %w", err)
	}
	if removed, err = existing.Clean(ctx, admin); err != nil {
		return removed, err
	}
	return removed, subject.Revoke(ctx, admin)
}
