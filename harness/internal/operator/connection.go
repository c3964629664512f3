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
// and an equal sign if the value follows in the same argument.
var connectionFlag = regexp.MustCompile(`^--?(kubeconfig|master)(=|$)`)

// toProxy returns arguments of a Deployment with which the program connects to the fault proxy. It omits the
// flag --master, and sets the value of the flag --kubeconfig.
func toProxy(args []string) []string {
	var changed []string
	for i := 0; i < len(args); i++ {
		match := connectionFlag.FindStringSubmatch(args[i])
		if match == nil {
			changed = append(changed, args[i])
			continue
		}
		if match[2] == "" {
			i++ // the next argument is the value
		}
		if match[1] == "kubeconfig" {
			changed = append(changed, "--kubeconfig={{.Kubeconfig}}")
		}
	}
	return changed
}

// pastProxy returns the index of the first argument that leads the program past the fault proxy. An example is
// --kubeconfig=/root/.kube/config. It returns -1 if there is none.
func pastProxy(args []string) int {
	for i, arg := range args {
		match := connectionFlag.FindStringSubmatch(arg)
		if match == nil {
			continue
		}
		value := strings.TrimPrefix(arg, match[0])
		if match[2] == "" && i+1 < len(args) {
			value = args[i+1]
		}
		if value != "" && !strings.Contains(value, "{{") {
			return i
		}
	}
	return -1
}

// isAddress reports whether a run sets the environment variable with the given name itself; see [addresses].
func isAddress(name string) bool { return slices.Contains(addresses, name) }
