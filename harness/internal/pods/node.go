package pods

import (
	"context"
	"fmt"
	"strings"
)

// The scripts in this file use ctr, the client of containerd, because not every node image contains
// crictl.

// pidOf defines the shell function pid_of, which prints the process ID of the container with ID
// $1. The function prints nothing if the container is not running. It fails if containerd does
// not respond.
const pidOf = `
pid_of() {
	tasks=$(ctr --namespace k8s.io tasks ls) || return 1
	echo "$tasks" | while read -r id pid rest; do
		if [ "$id" = "$1" ]; then echo "$pid"; fi
	done
}
`

// followScript is a shell script that prints the log file $2 of container $1 while the log
// grows. It removes the prefix that containerd writes before each line. It exits with status 0
// after the container's process has ended and the script has printed the whole log.
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

// killScript is a shell script that sends signal $1 to the containers whose IDs follow. For the
// signal KILL, the script waits until the containers' processes have ended.
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

// shell returns a command that runs a shell script with the given arguments as $1, $2 and so on.
func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "gauntlet"}, args...)
}

// signal sends a signal to the processes of the given containers. The argument name is the
// signal without SIG, such as "TERM". signal ignores containers that are not running.
func signal(ctx context.Context, node Node, name string, containers ...string) error {
	if _, err := node.Exec(ctx, shell(killScript, append([]string{name}, containers...)...)...); err != nil {
		return fmt.Errorf("sending SIG%s to containers %s on node %s: %w", name, strings.Join(containers, ", "), node.Name(), err)
	}
	return nil
}

// gone returns nil if the container with the given ID is not running on the node. It returns an
// error if the container is running, or if the node does not respond.
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
