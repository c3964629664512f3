package operator

import (
	"regexp"
	"slices"
	"strings"
)

// addresses are the environment variables from which a program takes its connection to the API server. A run
// sets them, so that the program connects to the fault proxy.
var addresses = []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}

// connectionFlag matches a flag with the connection to the API server. The groups are the name of the flag,
// and its value if it is in the same argument.
var connectionFlag = regexp.MustCompile(`(?s)^--?(kubeconfig|master)(?:=(.*))?$`)

// connectionOf returns the name and the value of the first argument, if it matches [connectionFlag]. The length
// is the number of arguments that the flag and its value take. It is 0 for any other argument.
func connectionOf(args []string) (name, value string, length int) {
	match := connectionFlag.FindStringSubmatch(args[0])
	switch {
	case match == nil:
		return "", "", 0
	case !strings.Contains(args[0], "=") && len(args) > 1:
		return match[1], args[1], 2
	}
	return match[1], match[2], 1
}

// toProxy returns arguments of a Deployment with which the program connects to the fault proxy. It omits the
// flag --master, and sets the value of the flag --kubeconfig.
func toProxy(args []string) []string {
	var changed []string
	for len(args) > 0 {
		name, _, length := connectionOf(args)
		switch name {
		case "":
			changed = append(changed, args[0])
		case "kubeconfig":
			changed = append(changed, "--kubeconfig={{.Kubeconfig}}")
		}
		args = args[max(length, 1):]
	}
	return changed
}

// pastProxy returns the index of the first argument that leads the program past the fault proxy. An example is
// --kubeconfig=/root/.kube/config. It returns -1 if there is none.
func pastProxy(args []string) int {
	for i := range args {
		if _, value, _ := connectionOf(args[i:]); value != "" && !strings.Contains(value, "{{") {
			return i
		}
	}
	return -1
}

// isAddress reports whether a run sets the environment variable with the given name itself; see [addresses].
func isAddress(name string) bool { return slices.Contains(addresses, name) }
