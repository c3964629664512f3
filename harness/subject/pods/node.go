package pods

import (
	"context"
	"fmt"
	"strings"
)

// What is done on the node goes through containerd's own command: the container
// runtime's is not on every node image.

// pidOf is the shell function that prints the ID of a container's process as the
// node knows it, nothing if the container does not run. Its status tells whether
// containerd answered.
const pidOf = `
pid_of() {
	tasks=$(ctr --namespace k8s.io tasks ls) || return 1
	echo "$tasks" | while read -r id pid rest; do
		if [ "$id" = "$1" ]; then echo "$pid"; fi
	done
}
`

// followScript prints the log of container $1, which is the file $2, without what
// containerd puts before each line, until the container's process is gone and
// its log complete. Its status is 0 if that is why it ended.
const followScript = pidOf + `
pid=$(pid_of "$1") || exit 1
{
	# What the process said last is still on its way to the file when it is gone.
	while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	sleep 0.2
} &
tail --pid=$! --sleep-interval=0.05 --lines=+1 --follow=name --retry "$2" 2>/dev/null |
	sed --unbuffered --regexp-extended 's/^[^ ]+ (stdout|stderr) [FP] //'
pid=$(pid_of "$1") && [ -z "$pid" ]
`

// killScript sends signal $1 to the processes of the containers that follow, and
// with the signal KILL returns when they are gone.
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

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "gauntlet"}, args...)
}

// signal signals the processes of containers that run.
func signal(ctx context.Context, node Node, name string, containers ...string) error {
	if _, err := node.Exec(ctx, shell(killScript, append([]string{name}, containers...)...)...); err != nil {
		return fmt.Errorf("sending SIG%s to containers %s on %s: %w", name, strings.Join(containers, ", "), node.Name(), err)
	}
	return nil
}

// gone is nil when no process of a container runs on the node.
func gone(ctx context.Context, node Node, container string) error {
	pid, err := node.Exec(ctx, shell(pidOf+`pid_of "$1"`, container)...)
	if err != nil {
		return err
	}
	if pid != "" {
		return fmt.Errorf("process %s on %s still runs", pid, node.Name())
	}
	return nil
}
