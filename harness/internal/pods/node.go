package pods

import (
	"context"
	"fmt"
	"strings"
)

// The scripts in this file use ctr, the client of containerd, because not every node image contains
// crictl.

// pidOf is a shell function that prints the process ID of the container with the ID $1. It
// prints nothing if the container does not run, and fails if containerd does not respond.
const pidOf = `
pid_of() {
	tasks=$(ctr --namespace k8s.io tasks ls) || return 1
	echo "$tasks" | while read -r id pid rest; do
		if [ "$id" = "$1" ]; then echo "$pid"; fi
	done
}
`

// followScript is a shell script that prints the log file $2 of container $1 while the log grows.
// It removes the prefix that containerd writes before each line. It exits with status 0 when the
// process of the container has ended and the log is complete.
const followScript = pidOf + `
pid=$(pid_of "$1") || exit 1
{
	# containerd may write the last lines after the process has ended.
	while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	sleep 0.2
} &
tail --pid=$! --sleep-interval=0.05 --lines=+1 --follow=name --retry "$2" 2>/dev/null |
	sed --unbuffered --regexp-extended 's/^[^ ]+ (stdout|stderr) [FP] //'
pid=$(pid_of "$1") && [ -z "$pid" ]
`

// killScript is a shell script that sends the signal $1 to containers. The other arguments are the
// IDs of the containers. For the signal KILL, the script waits until the processes have ended.
const killScript = pidOf + `
signal=$1
shift
for container; do
	pid=$(pid_of "$container") || exit 1
	if [ -n "$pid" ]; then kill -s "$signal" "$pid" 2>/dev/null; fi
	while [ "$signal" = KILL ] && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
done
exit 0
`

// shell returns the command that runs a shell script with the given arguments.
func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "gauntlet"}, args...)
}

// signal sends the signal with this name, such as "TERM", to the processes of the given containers.
// It ignores containers that do not run.
func signal(ctx context.Context, node Node, name string, containers ...string) error {
	if _, err := node.Exec(ctx, shell(killScript, append([]string{name}, containers...)...)...); err != nil {
		return fmt.Errorf("sending SIG%s to containers %s on node %s: %w", name, strings.Join(containers, ", "), node.Name(), err)
	}
	return nil
}

// gone returns nil if the container with this ID does not run on the node.
func gone(ctx context.Context, node Node, container string) error {
	pid, err := node.Exec(ctx, shell(pidOf+`pid_of "$1"`, container)...)
	if err != nil {
		return err
	}
	if pid != "" {
		return fmt.Errorf("process %s of container %s on node %s is still running", pid, container, node.Name())
	}
	return nil
}
